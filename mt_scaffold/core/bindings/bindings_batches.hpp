// What tokenizers of other libraries need for a batch of texts: tokens found in them, and matrices of ids.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_batches(nanobind::module_& module);

}  // namespace mt_scaffold
