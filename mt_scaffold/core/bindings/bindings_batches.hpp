// Batches of ids for the tokenizers of other libraries.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_batches(nanobind::module_& module);

}  // namespace mt_scaffold
