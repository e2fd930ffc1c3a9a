#ifndef PLANC_KERNELS_MATMUL_GRID_H_
#define PLANC_KERNELS_MATMUL_GRID_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace planc::host {

// How C, `groups` of rows by `panels` of columns, is cut into one rectangle per thread. Threads
// share nothing, so none waits for another; what two of them need of A or B, both pack.
class MatmulGrid {
 public:
  struct Part {
    int64_t first_group, end_group, first_panel, end_panel;
  };

  // At most `parts` rectangles; `packing` is what packing one element costs, in multiplied pairs.
  MatmulGrid(int64_t groups, int64_t panels, int64_t group_rows, int64_t panel_columns,
             int64_t parts, int64_t packing)
      : groups_(groups), panels_(panels) {
    parts = std::clamp<int64_t>(parts, 1, groups * panels);
    int64_t best = std::numeric_limits<int64_t>::max();
    for (int64_t candidate = 1; candidate <= parts; ++candidate) {
      if (parts % candidate != 0) continue;
      const int64_t rows = (groups + candidate - 1) / candidate * group_rows;
      const int64_t across = parts / candidate;
      const int64_t columns = (panels + across - 1) / across * panel_columns;
      const int64_t cost = rows * columns + packing * (rows + columns);
      if (cost >= best) continue;
      best = cost;
      rows_ = candidate;
      columns_ = across;
    }
  }

  int64_t parts() const { return rows_ * columns_; }

  Part PartOf(int64_t index) const {
    const int64_t i = index / columns_, j = index % columns_;
    return {groups_ * i / rows_, groups_ * (i + 1) / rows_, panels_ * j / columns_,
            panels_ * (j + 1) / columns_};
  }

 private:
  int64_t groups_, panels_;
  int64_t rows_ = 1, columns_ = 1;
};

}  // namespace planc::host

#endif  // PLANC_KERNELS_MATMUL_GRID_H_
