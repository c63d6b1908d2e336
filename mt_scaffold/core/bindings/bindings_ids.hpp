// The class of _core that encodes into ids and decodes.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_ids(nanobind::module_& module);

}  // namespace mt_scaffold
