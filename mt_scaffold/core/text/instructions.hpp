// Instructions that only some processors have: AVX2, unless MT_SCAFFOLD_SIMD is something else, as tests set it.
#pragma once

#include <cstdlib>
#include <string_view>

#if defined(__SSE2__)
#include <cpuid.h>
#include <immintrin.h>

#define MT_SCAFFOLD_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))

namespace mt_scaffold {

// __builtin_cpu_supports() of older compilers does not know lzcnt.
inline bool has_lzcnt() {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_ABM) != 0;
}

inline bool may_use_avx2() {
  const char* const only = std::getenv("MT_SCAFFOLD_SIMD");
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt") && has_lzcnt() && (!only || std::string_view(only) == "avx2");
}

}  // namespace mt_scaffold

#endif  // __SSE2__
