// The parts of mt_scaffold._core, each in the file of its name.
#pragma once

#include <nanobind/nanobind.h>

namespace mt_scaffold {

void bind_codes(nanobind::module_& module);
void bind_counts(nanobind::module_& module);
void bind_ids(nanobind::module_& module);
void bind_pretokeniser(nanobind::module_& module);

}  // namespace mt_scaffold
