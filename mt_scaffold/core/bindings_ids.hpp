// What bindings.cpp and bindings_ids.cpp share.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "blocks.hpp"
#include "tick.hpp"

namespace mt_scaffold {

using NamedObject = std::pair<std::string, pybind11::object>;
using MakeReader = std::function<BlockReader(const std::vector<NamedObject>&)>;
using MakeSink = std::function<std::unique_ptr<Sink>(const NamedObject&)>;
using MakeTick = std::function<Tick(pybind11::object)>;

// Adds the class Ids, whose methods read and write with what the given functions make.
void bind_ids(pybind11::module_& module, const MakeReader& make_reader, const MakeSink& make_sink,
              const MakeTick& make_tick);

}  // namespace mt_scaffold
