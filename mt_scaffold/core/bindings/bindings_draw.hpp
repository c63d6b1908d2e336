// Converts a Draw of mt_scaffold.segment.draw, or None.
#pragma once

#include <exception>
#include <string_view>

#include "bindings/bindings_text.hpp"
#include "inference/dropout.hpp"

namespace nanobind::detail {

template <>
struct type_caster<mt_scaffold::Draw> {
  NB_TYPE_CASTER(mt_scaffold::Draw, const_name("mt_scaffold.segment.draw.Draw"))

  bool from_python(handle given, uint8_t, cleanup_list*) noexcept {
    if (given.is_none()) return true;
    try {
      const auto dropout = cast<double>(given.attr("amount"));
      if (!(dropout > 0)) return true;
      if (cast<std::string_view>(given.attr("kind")) != "dropout") return false;
      value = {dropout, cast<uint64_t>(given.attr("core_seed")), cast<uint64_t>(given.attr("epoch"))};
      return true;
    } catch (const std::exception&) {
      PyErr_Clear();
      return false;
    }
  }
};

}  // namespace nanobind::detail
