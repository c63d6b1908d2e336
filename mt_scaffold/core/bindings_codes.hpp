// Codes as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

namespace mt_scaffold {

void bind_codes(pybind11::module_& module);

}  // namespace mt_scaffold
