#include "text/hashing.hpp"

#include <chrono>
#include <exception>
#include <random>

namespace mt_scaffold {

namespace {

HashSeeds draw() {
  HashSeeds seeds{0, 0};
  // The time and the stack's address, for a system without random numbers.
  const auto time = static_cast<uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count());
  const uint64_t address = reinterpret_cast<uintptr_t>(&seeds);
  seeds = {time * 0x9E3779B97F4A7C15ULL, address * 0xA0761D6478BD642FULL};
  try {
    std::random_device device;
    for (uint64_t* seed : {&seeds.first, &seeds.second}) *seed ^= uint64_t{device()} << 32 | device();
  } catch (const std::exception&) {
  }
  seeds.second |= 1;
  return seeds;
}

}  // namespace

const HashSeeds kHashSeeds = draw();

}  // namespace mt_scaffold
