#include "kernels/amx/tile.h"

#include <immintrin.h>

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

TileScope::TileScope() { ConfigureTiles(); }
TileScope::~TileScope() { ReleaseTiles(); }

}  // namespace planc::host
