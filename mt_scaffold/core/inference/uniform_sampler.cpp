#include "inference/uniform_sampler.hpp"

#include <algorithm>

namespace mt_scaffold {

namespace {

constexpr double kScale = 0x1p512, kUnscale = 0x1p-512;

}  // namespace

void UniformSampler::draw(std::string_view word, RandomStream& random, Scratch& scratch) const {
  const auto size = static_cast<uint32_t>(word.size());
  scratch.ends.clear();
  scratch.starts.clear();
  scratch.targets.clear();
  scratch.marked.assign(word);
  if (alphabet_.end_of_word) scratch.marked += kEndOfWord;
  uint32_t ignored;
  for (size_t at = 0; at < size; at += first_symbol(word.substr(at), alphabet_, ignored))
    scratch.starts.push_back(static_cast<uint32_t>(at));
  std::vector<Scratch::Node>& nodes = scratch.nodes;
  if (nodes.size() <= size) nodes.resize(size + 1);
  nodes[size] = {1, 0, 0, 0};
  // In the scale of the next position, whose paths are the most. Two scales less are less than a rounding error.
  const auto paths = [&](uint32_t target, uint32_t scale) {
    const Scratch::Node& node = nodes[target];
    return node.scale == scale ? node.paths : node.scale + 1 == scale ? node.paths * kUnscale : 0;
  };
  uint32_t next = size;
  for (size_t i = scratch.starts.size(); i-- > 0;) {
    const uint32_t begin = scratch.starts[i];
    Scratch::Node node = {nodes[next].paths, nodes[next].scale, static_cast<uint32_t>(scratch.targets.size()), 0};
    scratch.targets.push_back(next);
    tokens_.for_each_token(scratch.marked, size, begin, [&](size_t end) {
      const auto target = static_cast<uint32_t>(std::min<size_t>(end, size));
      if (target == next) return;
      scratch.targets.push_back(target);
      node.paths += paths(target, node.scale);
    });
    node.last = static_cast<uint32_t>(scratch.targets.size());
    if (node.paths >= kScale) {
      node.paths *= kUnscale;
      ++node.scale;
    }
    nodes[begin] = node;
    next = begin;
  }
  for (uint32_t at = 0; at < size; at = scratch.ends.back()) {
    const Scratch::Node& node = nodes[at];
    uint32_t chosen = scratch.targets[node.first];
    if (node.last - node.first > 1) {
      // The sum of the same numbers in the same order: the draw is less than it.
      const uint32_t scale = nodes[chosen].scale;
      const double all = node.scale == scale ? node.paths : node.paths * kScale;
      const double drawn = static_cast<double>(random.next() >> 11) * 0x1p-53 * all;
      double sum = nodes[chosen].paths;
      for (uint32_t k = node.first + 1; sum <= drawn && k < node.last; ++k) {
        chosen = scratch.targets[k];
        sum += paths(chosen, scale);
      }
    }
    scratch.ends.push_back(chosen);
  }
}

}  // namespace mt_scaffold
