// Instructions that only some processors have. MT_SCAFFOLD_SIMD names the only ones to use, for tests.
#pragma once

#include <cstdlib>
#include <string_view>

#if defined(__SSE2__)
#include <immintrin.h>

#define MT_SCAFFOLD_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define MT_SCAFFOLD_AVX512 __attribute__((target("avx512f,avx512bw,bmi,bmi2")))

namespace mt_scaffold {

inline bool may_use(std::string_view instructions, bool supported) {
  const char* const only = std::getenv("MT_SCAFFOLD_SIMD");
  return supported && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         (!only || only == instructions);
}
inline bool may_use_avx512() { return may_use("avx512", __builtin_cpu_supports("avx512bw")); }
inline bool may_use_avx2() { return may_use("avx2", __builtin_cpu_supports("avx2")); }

}  // namespace mt_scaffold

#endif  // __SSE2__
