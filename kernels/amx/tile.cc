#include "kernels/amx/tile.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

PLANC_BEFORE_AMX
namespace planc::host {
namespace {

// The operand of LDTILECFG, palette 1.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

constexpr TileConfiguration FullTiles() {
  TileConfiguration configuration;
  for (int tile = 0; tile < 8; ++tile) {
    configuration.row_bytes[tile] = kTileRowBytes;
    configuration.rows[tile] = kTileRows;
  }
  return configuration;
}

constexpr TileConfiguration kFullTiles = FullTiles();

void ConfigureTiles() { _tile_loadconfig(&kFullTiles); }
void ReleaseTiles() { _tile_release(); }

}  // namespace
}  // namespace planc::host
PLANC_AFTER_AMX

namespace planc::host {
namespace {

bool ProcessorHasAmxBf16() {
  constexpr uint32_t kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;   // leaf 7, EDX
  constexpr uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 28 |  // leaf 7, EBX: F, DQ, CD
                               1u << 30 | 1u << 31;              // BW, VL
  constexpr uint32_t kAvx512Bf16 = 1u << 5;                      // leaf 7.1, EAX
  constexpr uint32_t kOsXsave = 1u << 27;                        // leaf 1, ECX
  constexpr uint32_t kStates = 3u << 1 | 7u << 5 | 3u << 17;     // vectors, masks, tiles
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool has_leaf_one = eax >= 1;
  if ((edx & kAmxBf16) == 0 || (edx & kAmxTile) == 0 || (ebx & kAvx512) != kAvx512) return false;
  if (!has_leaf_one || __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((eax & kAvx512Bf16) == 0) return false;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kStates) == kStates;
}

bool RequestTileData() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

TileScope::TileScope() { ConfigureTiles(); }
TileScope::~TileScope() { ReleaseTiles(); }

bool AmxBf16IsAvailable() {
  static const bool available = ProcessorHasAmxBf16() && RequestTileData();
  return available;
}

}  // namespace planc::host
