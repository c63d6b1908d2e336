// Parity-aware BPE as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_parity(nanobind::module_& module);

}  // namespace mt_scaffold
