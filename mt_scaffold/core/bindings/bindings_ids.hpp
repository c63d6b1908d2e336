// _core.Ids, which encodes text into ids and decodes them.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_ids(nanobind::module_& module);

}  // namespace mt_scaffold
