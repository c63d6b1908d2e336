// Finds the word that a cell of the training text belongs to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/pairs.hpp"
#include "memory/huge_pages.hpp"

namespace mt_scaffold {

// A bit per cell marks boundaries, and each block counts the words before it: two bits of memory per cell.
class WordNumbers {
 public:
  // `cells`: the final number of cells.
  void reserve(size_t cells) { blocks_.assign(cells / kBlock + 1, {0, 0}); }

  // In ascending order; the first boundary comes before the first word.
  void add_boundary(size_t cell) {
    for (size_t block = last_ / kBlock + 1; block <= cell / kBlock; ++block) blocks_[block].before = boundaries_;
    blocks_[cell / kBlock].boundaries |= uint32_t{1} << cell % kBlock;
    ++boundaries_;
    last_ = cell;
  }

  // The number of the word of a cell that is not a boundary.
  uint32_t operator[](Position cell) const {
    const Block block = blocks_[cell / kBlock];
    return block.before + ones(block.boundaries & ((uint32_t{1} << cell % kBlock) - 1)) - 1;
  }

 private:
  static constexpr size_t kBlock = 32;
  struct Block {
    uint32_t boundaries, before;
  };

  // std::popcount() is a function call if the target may lack the instruction.
  static uint32_t ones(uint32_t bits) {
    bits -= bits >> 1 & 0x55555555;
    bits = (bits & 0x33333333) + (bits >> 2 & 0x33333333);
    return ((bits + (bits >> 4)) & 0x0F0F0F0F) * 0x01010101 >> 24;
  }

  HugeVector<Block> blocks_;
  uint32_t boundaries_ = 0;
  size_t last_ = 0;
};

}  // namespace mt_scaffold
