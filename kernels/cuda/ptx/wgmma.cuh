// The matrix units of Hopper: thin names for wgmma.mma_async of bfloat16 with float32 sums. sm_90a.
//
// c(64, N) += a(64, 16) b(16, N)^T by one warpgroup (4 warps, the first one's number divisible by
// 4). Of c, thread t of warp w (of the four) with g = t / 4 has in c[4 j ...]: rows 16 w + g, 16 w
// + g, 16 w + g + 8, 16 w + g + 8 at columns 8 j + 2 (t % 4), the next, and the same two again. An
// a from registers lies as that of MultiplyAccumulate in mma.cuh, rows counted from 16 w.
#ifndef PLUMBLINE_KERNELS_CUDA_PTX_WGMMA_CUH_
#define PLUMBLINE_KERNELS_CUDA_PTX_WGMMA_CUH_

#include <cstdint>

namespace plumbline::cuda::ptx {

// Which axis of an operand in shared memory is contiguous. Either way memory is rows of 128 bytes
// with the 128-byte swizzle, from a multiple of 1024 bytes on.
enum class Major {
  kK,  // a row is 64 values of k; rows of m (or n) follow one another
  kMn  // a row is 64 values of m (or n); rows of k follow one another, and a `block_bytes` further
       // on the next 64 values of m (or n) begin
};

// Describes an operand whose first value is at `address`. kK: the next 16 of k are 32 bytes on;
// kMn: 2048 bytes on.
template <Major kMajor>
__device__ uint64_t Describe(uint32_t address, uint32_t block_bytes = 0) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;
  const uint64_t leading = kMajor == Major::kK ? 1 : block_bytes >> 4;
  return kSwizzle128 | kEightRows | (leading << 16) | ((address & 0x3FFFF) >> 4);
}

// Before the first product, and again wherever registers of c or a were written in between.
__device__ inline void FenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until all but the last kPending groups of products are complete.
template <int kPending>
__device__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving accesses of sums over this point.
template <int kCount>
__device__ void Pin(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Four 8x8 matrices of bfloat16 to shared memory, each transposed. Lane l gives the address of
// column l % 8 of matrix l / 8, and has of each matrix the two values at row l / 4, columns 2 (l %
// 4) and the next.
__device__ inline void StoreMatricesTransposed(uint32_t address, uint32_t m0, uint32_t m1,
                                               uint32_t m2, uint32_t m3) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(m0), "r"(m1), "r"(m2), "r"(m3)
      : "memory");
}

// Product<N>: c = a b^T, plus c where `add`; a from shared memory or from registers.
template <int N>
struct Product;

// Register lists of c: "%0, %1, ..." for each N, and the operands.
#define PLUMBLINE_C_8 "%0, %1, %2, %3"
#define PLUMBLINE_O_8 "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
#define PLUMBLINE_C_16 PLUMBLINE_C_8 ", %4, %5, %6, %7"
#define PLUMBLINE_O_16 PLUMBLINE_O_8, "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
#define PLUMBLINE_C_24 PLUMBLINE_C_16 ", %8, %9, %10, %11"
#define PLUMBLINE_O_24 PLUMBLINE_O_16, "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11])
#define PLUMBLINE_C_32 PLUMBLINE_C_24 ", %12, %13, %14, %15"
#define PLUMBLINE_O_32 PLUMBLINE_O_24, "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
#define PLUMBLINE_C_40 PLUMBLINE_C_32 ", %16, %17, %18, %19"
#define PLUMBLINE_O_40 PLUMBLINE_O_32, "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19])
#define PLUMBLINE_C_48 PLUMBLINE_C_40 ", %20, %21, %22, %23"
#define PLUMBLINE_O_48 PLUMBLINE_O_40, "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23])
#define PLUMBLINE_C_56 PLUMBLINE_C_48 ", %24, %25, %26, %27"
#define PLUMBLINE_O_56 PLUMBLINE_O_48, "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27])
#define PLUMBLINE_C_64 PLUMBLINE_C_56 ", %28, %29, %30, %31"
#define PLUMBLINE_O_64 PLUMBLINE_O_56, "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
#define PLUMBLINE_C_72 PLUMBLINE_C_64 ", %32, %33, %34, %35"
#define PLUMBLINE_O_72 PLUMBLINE_O_64, "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35])
#define PLUMBLINE_C_80 PLUMBLINE_C_72 ", %36, %37, %38, %39"
#define PLUMBLINE_O_80 PLUMBLINE_O_72, "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39])
#define PLUMBLINE_C_88 PLUMBLINE_C_80 ", %40, %41, %42, %43"
#define PLUMBLINE_O_88 PLUMBLINE_O_80, "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43])
#define PLUMBLINE_C_96 PLUMBLINE_C_88 ", %44, %45, %46, %47"
#define PLUMBLINE_O_96 PLUMBLINE_O_88, "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47])
#define PLUMBLINE_C_104 PLUMBLINE_C_96 ", %48, %49, %50, %51"
#define PLUMBLINE_O_104 PLUMBLINE_O_96, "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51])
#define PLUMBLINE_C_112 PLUMBLINE_C_104 ", %52, %53, %54, %55"
#define PLUMBLINE_O_112 PLUMBLINE_O_104, "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55])
#define PLUMBLINE_C_120 PLUMBLINE_C_112 ", %56, %57, %58, %59"
#define PLUMBLINE_O_120 PLUMBLINE_O_112, "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59])
#define PLUMBLINE_C_128 PLUMBLINE_C_120 ", %60, %61, %62, %63"
#define PLUMBLINE_O_128 PLUMBLINE_O_120, "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
#define PLUMBLINE_C_136 PLUMBLINE_C_128 ", %64, %65, %66, %67"
#define PLUMBLINE_O_136 PLUMBLINE_O_128, "+f"(c[64]), "+f"(c[65]), "+f"(c[66]), "+f"(c[67])
#define PLUMBLINE_C_144 PLUMBLINE_C_136 ", %68, %69, %70, %71"
#define PLUMBLINE_O_144 PLUMBLINE_O_136, "+f"(c[68]), "+f"(c[69]), "+f"(c[70]), "+f"(c[71])
#define PLUMBLINE_C_152 PLUMBLINE_C_144 ", %72, %73, %74, %75"
#define PLUMBLINE_O_152 PLUMBLINE_O_144, "+f"(c[72]), "+f"(c[73]), "+f"(c[74]), "+f"(c[75])
#define PLUMBLINE_C_160 PLUMBLINE_C_152 ", %76, %77, %78, %79"
#define PLUMBLINE_O_160 PLUMBLINE_O_152, "+f"(c[76]), "+f"(c[77]), "+f"(c[78]), "+f"(c[79])
#define PLUMBLINE_C_168 PLUMBLINE_C_160 ", %80, %81, %82, %83"
#define PLUMBLINE_O_168 PLUMBLINE_O_160, "+f"(c[80]), "+f"(c[81]), "+f"(c[82]), "+f"(c[83])
#define PLUMBLINE_C_176 PLUMBLINE_C_168 ", %84, %85, %86, %87"
#define PLUMBLINE_O_176 PLUMBLINE_O_168, "+f"(c[84]), "+f"(c[85]), "+f"(c[86]), "+f"(c[87])
#define PLUMBLINE_C_184 PLUMBLINE_C_176 ", %88, %89, %90, %91"
#define PLUMBLINE_O_184 PLUMBLINE_O_176, "+f"(c[88]), "+f"(c[89]), "+f"(c[90]), "+f"(c[91])
#define PLUMBLINE_C_192 PLUMBLINE_C_184 ", %92, %93, %94, %95"
#define PLUMBLINE_O_192 PLUMBLINE_O_184, "+f"(c[92]), "+f"(c[93]), "+f"(c[94]), "+f"(c[95])
#define PLUMBLINE_C_200 PLUMBLINE_C_192 ", %96, %97, %98, %99"
#define PLUMBLINE_O_200 PLUMBLINE_O_192, "+f"(c[96]), "+f"(c[97]), "+f"(c[98]), "+f"(c[99])
#define PLUMBLINE_C_208 PLUMBLINE_C_200 ", %100, %101, %102, %103"
#define PLUMBLINE_O_208 PLUMBLINE_O_200, "+f"(c[100]), "+f"(c[101]), "+f"(c[102]), "+f"(c[103])
#define PLUMBLINE_C_216 PLUMBLINE_C_208 ", %104, %105, %106, %107"
#define PLUMBLINE_O_216 PLUMBLINE_O_208, "+f"(c[104]), "+f"(c[105]), "+f"(c[106]), "+f"(c[107])
#define PLUMBLINE_C_224 PLUMBLINE_C_216 ", %108, %109, %110, %111"
#define PLUMBLINE_O_224 PLUMBLINE_O_216, "+f"(c[108]), "+f"(c[109]), "+f"(c[110]), "+f"(c[111])
#define PLUMBLINE_C_232 PLUMBLINE_C_224 ", %112, %113, %114, %115"
#define PLUMBLINE_O_232 PLUMBLINE_O_224, "+f"(c[112]), "+f"(c[113]), "+f"(c[114]), "+f"(c[115])
#define PLUMBLINE_C_240 PLUMBLINE_C_232 ", %116, %117, %118, %119"
#define PLUMBLINE_O_240 PLUMBLINE_O_232, "+f"(c[116]), "+f"(c[117]), "+f"(c[118]), "+f"(c[119])
#define PLUMBLINE_C_248 PLUMBLINE_C_240 ", %120, %121, %122, %123"
#define PLUMBLINE_O_248 PLUMBLINE_O_240, "+f"(c[120]), "+f"(c[121]), "+f"(c[122]), "+f"(c[123])
#define PLUMBLINE_C_256 PLUMBLINE_C_248 ", %124, %125, %126, %127"
#define PLUMBLINE_O_256 PLUMBLINE_O_248, "+f"(c[124]), "+f"(c[125]), "+f"(c[126]), "+f"(c[127])

// R0 is the number of the first operand after c, R1 the next...
#define PLUMBLINE_WGMMA(N, R0, R1, R2, R3, R4, R5, R6)                                             \
  template <>                                                                                      \
  struct Product<N> {                                                                              \
    template <Major kA, Major kB>                                                                  \
    __device__ static void Shared(float (&c)[N / 2], uint64_t a, uint64_t b, bool add) {           \
      asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #R2                                    \
                   ", 0;\n"                                                                        \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" PLUMBLINE_C_##N    \
                   "}, %" #R0 ", %" #R1 ", add, 1, 1, %" #R3 ", %" #R4 ";\n}"                      \
                   : PLUMBLINE_O_##N                                                               \
                   : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(kA == Major::kMn ? 1 : 0),    \
                     "n"(kB == Major::kMn ? 1 : 0));                                               \
    }                                                                                              \
    template <Major kB>                                                                            \
    __device__ static void Registers(float (&c)[N / 2], const uint32_t* a, uint64_t b, bool add) { \
      asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" #R5                                    \
                   ", 0;\n"                                                                        \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" PLUMBLINE_C_##N    \
                   "}, {%" #R0 ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4 ", add, 1, 1, %" #R6       \
                   ";\n}"                                                                          \
                   : PLUMBLINE_O_##N                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                           \
                     "r"(static_cast<int>(add)), "n"(kB == Major::kMn ? 1 : 0));                   \
    }                                                                                              \
  };

PLUMBLINE_WGMMA(8, 4, 5, 6, 7, 8, 9, 10)
PLUMBLINE_WGMMA(16, 8, 9, 10, 11, 12, 13, 14)
PLUMBLINE_WGMMA(32, 16, 17, 18, 19, 20, 21, 22)
PLUMBLINE_WGMMA(48, 24, 25, 26, 27, 28, 29, 30)
PLUMBLINE_WGMMA(64, 32, 33, 34, 35, 36, 37, 38)
PLUMBLINE_WGMMA(80, 40, 41, 42, 43, 44, 45, 46)
PLUMBLINE_WGMMA(88, 44, 45, 46, 47, 48, 49, 50)
PLUMBLINE_WGMMA(96, 48, 49, 50, 51, 52, 53, 54)
PLUMBLINE_WGMMA(112, 56, 57, 58, 59, 60, 61, 62)
PLUMBLINE_WGMMA(128, 64, 65, 66, 67, 68, 69, 70)
PLUMBLINE_WGMMA(144, 72, 73, 74, 75, 76, 77, 78)
PLUMBLINE_WGMMA(160, 80, 81, 82, 83, 84, 85, 86)
PLUMBLINE_WGMMA(176, 88, 89, 90, 91, 92, 93, 94)
PLUMBLINE_WGMMA(192, 96, 97, 98, 99, 100, 101, 102)
PLUMBLINE_WGMMA(208, 104, 105, 106, 107, 108, 109, 110)
PLUMBLINE_WGMMA(224, 112, 113, 114, 115, 116, 117, 118)
PLUMBLINE_WGMMA(240, 120, 121, 122, 123, 124, 125, 126)
PLUMBLINE_WGMMA(256, 128, 129, 130, 131, 132, 133, 134)
#undef PLUMBLINE_WGMMA
#undef PLUMBLINE_C_8
#undef PLUMBLINE_O_8
#undef PLUMBLINE_C_16
#undef PLUMBLINE_O_16
#undef PLUMBLINE_C_24
#undef PLUMBLINE_O_24
#undef PLUMBLINE_C_32
#undef PLUMBLINE_O_32
#undef PLUMBLINE_C_40
#undef PLUMBLINE_O_40
#undef PLUMBLINE_C_48
#undef PLUMBLINE_O_48
#undef PLUMBLINE_C_56
#undef PLUMBLINE_O_56
#undef PLUMBLINE_C_64
#undef PLUMBLINE_O_64
#undef PLUMBLINE_C_72
#undef PLUMBLINE_O_72
#undef PLUMBLINE_C_80
#undef PLUMBLINE_O_80
#undef PLUMBLINE_C_88
#undef PLUMBLINE_O_88
#undef PLUMBLINE_C_96
#undef PLUMBLINE_O_96
#undef PLUMBLINE_C_104
#undef PLUMBLINE_O_104
#undef PLUMBLINE_C_112
#undef PLUMBLINE_O_112
#undef PLUMBLINE_C_120
#undef PLUMBLINE_O_120
#undef PLUMBLINE_C_128
#undef PLUMBLINE_O_128
#undef PLUMBLINE_C_136
#undef PLUMBLINE_O_136
#undef PLUMBLINE_C_144
#undef PLUMBLINE_O_144
#undef PLUMBLINE_C_152
#undef PLUMBLINE_O_152
#undef PLUMBLINE_C_160
#undef PLUMBLINE_O_160
#undef PLUMBLINE_C_168
#undef PLUMBLINE_O_168
#undef PLUMBLINE_C_176
#undef PLUMBLINE_O_176
#undef PLUMBLINE_C_184
#undef PLUMBLINE_O_184
#undef PLUMBLINE_C_192
#undef PLUMBLINE_O_192
#undef PLUMBLINE_C_200
#undef PLUMBLINE_O_200
#undef PLUMBLINE_C_208
#undef PLUMBLINE_O_208
#undef PLUMBLINE_C_216
#undef PLUMBLINE_O_216
#undef PLUMBLINE_C_224
#undef PLUMBLINE_O_224
#undef PLUMBLINE_C_232
#undef PLUMBLINE_O_232
#undef PLUMBLINE_C_240
#undef PLUMBLINE_O_240
#undef PLUMBLINE_C_248
#undef PLUMBLINE_O_248
#undef PLUMBLINE_C_256
#undef PLUMBLINE_O_256

}  // namespace plumbline::cuda::ptx

#endif  // PLUMBLINE_KERNELS_CUDA_PTX_WGMMA_CUH_
