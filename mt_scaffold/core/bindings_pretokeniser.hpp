// The pre-tokenisers as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

namespace mt_scaffold {

void bind_pretokeniser(pybind11::module_& module);

}  // namespace mt_scaffold
