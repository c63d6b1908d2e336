// The class of _core that encodes into ids and decodes.
#pragma once

#include <pybind11/pybind11.h>

namespace mt_scaffold {

void bind_ids(pybind11::module_& module);

}  // namespace mt_scaffold
