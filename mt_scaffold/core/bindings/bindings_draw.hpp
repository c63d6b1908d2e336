// Converts a Draw of mt_scaffold.segment.draw, or None.
#pragma once

#include <exception>
#include <string>

#include "bindings/bindings_text.hpp"
#include "inference/dropout.hpp"

namespace nanobind::detail {

template <>
struct type_caster<mt_scaffold::Draw> {
  NB_TYPE_CASTER(mt_scaffold::Draw, const_name("Draw | None"))

  bool from_python(handle given, uint8_t, cleanup_list*) noexcept {
    using Kind = mt_scaffold::Draw::Kind;
    if (given.is_none()) return true;
    try {
      const auto amount = cast<double>(given.attr("amount"));
      if (!(amount > 0)) return true;
      const auto kind = cast<std::string>(given.attr("kind"));
      if (kind != "dropout" && kind != "uniform_sampling") return false;
      value = {kind == "dropout" ? Kind::kDropout : Kind::kUniform, amount, cast<uint64_t>(given.attr("core_seed")),
               cast<uint64_t>(given.attr("epoch"))};
      return true;
    } catch (const std::exception&) {
      PyErr_Clear();
      return false;
    }
  }
};

}  // namespace nanobind::detail
