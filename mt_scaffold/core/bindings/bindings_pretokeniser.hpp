// The pre-tokenisers as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_pretokeniser(nanobind::module_& module);

}  // namespace mt_scaffold
