#include "inference/uniform_sampler.hpp"

#include <algorithm>

#include "io/interruption.hpp"

namespace mt_scaffold {

namespace {

constexpr double kScale = 0x1p512, kUnscale = 0x1p-512;

}  // namespace

void UniformSampler::collect_targets(uint32_t begin, Scratch& scratch) const {
  const uint32_t next = scratch.nodes[begin].next, size = static_cast<uint32_t>(scratch.tokens.size);
  std::vector<uint32_t>& targets = scratch.targets;
  targets.clear();
  tokens_.for_each_token(scratch.tokens, begin, [&](size_t end, uint32_t) {
    const auto target = static_cast<uint32_t>(std::min<size_t>(end, size));
    if (target != next) targets.push_back(target);
    return true;
  });
  targets.push_back(next);
  std::reverse(targets.begin(), targets.end());
}

void UniformSampler::draw(std::string_view word, RandomStream& random, Scratch& scratch) const {
  const auto size = static_cast<uint32_t>(word.size());
  scratch.ends.clear();
  scratch.starts.clear();
  tokens_.find(word, alphabet_, scratch.tokens);
  uint32_t ignored;
  for (size_t at = 0; at < size; at += first_symbol(word.substr(at), alphabet_, ignored))
    scratch.starts.push_back(static_cast<uint32_t>(at));
  std::vector<Scratch::Node>& nodes = scratch.nodes;
  if (nodes.size() <= size) nodes.resize(size + 1);
  nodes[size] = {1, 0, size};
  // In the scale of the next position, which has the most paths; those two scales below are less than a rounding error.
  const auto paths = [&](uint32_t target, uint32_t scale) {
    const Scratch::Node& node = nodes[target];
    return node.scale == scale ? node.paths : node.scale + 1 == scale ? node.paths * kUnscale : 0;
  };
  uint32_t next = size;
  size_t steps = 0;
  for (size_t i = scratch.starts.size(); i-- > 0;) {
    const uint32_t begin = scratch.starts[i];
    Scratch::Node& node = nodes[begin];
    node = {nodes[next].paths, nodes[next].scale, next};
    collect_targets(begin, scratch);
    for (size_t k = 1; k < scratch.targets.size(); ++k) {
      may_interrupt(++steps);
      node.paths += paths(scratch.targets[k], node.scale);
    }
    if (node.paths >= kScale) {
      node.paths *= kUnscale;
      ++node.scale;
    }
    next = begin;
  }
  for (uint32_t at = 0; at < size; at = scratch.ends.back()) {
    const Scratch::Node& node = nodes[at];
    collect_targets(at, scratch);
    uint32_t chosen = node.next;
    if (scratch.targets.size() > 1) {
      // `sum` adds up the same numbers in the same order, so it ends above `drawn`.
      const uint32_t scale = nodes[chosen].scale;
      const double all = node.scale == scale ? node.paths : node.paths * kScale;
      const double drawn = static_cast<double>(random.next() >> 11) * 0x1p-53 * all;
      double sum = nodes[chosen].paths;
      for (size_t k = 1; sum <= drawn && k < scratch.targets.size(); ++k) {
        chosen = scratch.targets[k];
        sum += paths(chosen, scale);
      }
    }
    may_interrupt(++steps);
    scratch.ends.push_back(chosen);
  }
}

}  // namespace mt_scaffold
