// Instructions that only some processors have. MT_SCAFFOLD_SIMD names the only ones to use, for tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#if defined(__SSE2__)
#include <cpuid.h>
// gcc 12 warns about values that its own header leaves undefined on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#define MT_SCAFFOLD_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define MT_SCAFFOLD_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,bmi,bmi2,popcnt,lzcnt")))

namespace mt_scaffold {

// __builtin_cpu_supports() of older compilers does not know lzcnt.
inline bool has_lzcnt() {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & bit_ABM) != 0;
}

inline bool may_use(std::string_view instructions, bool supported) {
  const char* const only = std::getenv("MT_SCAFFOLD_SIMD");
  return supported && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt") && has_lzcnt() && (!only || only == instructions);
}
// Not static in functions: a child forked during their initialisation would wait for it forever. AVX-512 is that of Ice
// Lake, Zen 4 and their successors.
inline const bool kUseAvx512 =
    may_use("avx512", __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi2"));
inline const bool kUseAvx2 = may_use("avx2", __builtin_cpu_supports("avx2"));

MT_SCAFFOLD_AVX2 inline uint32_t least_of(__m128i four) {
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}
MT_SCAFFOLD_AVX2 inline uint32_t least_of(__m256i eight) {
  return least_of(_mm_min_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1)));
}

}  // namespace mt_scaffold

#endif  // __SSE2__
