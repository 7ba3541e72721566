#include <algorithm>

#include "executor/train/layers/factories.h"
#include "kernels/record_id.h"
#include "sim/base/check.h"

// Tables of vectors. Ids travel as numbers of the sample (kernels/record_id.h).
namespace reckon::run {
namespace {

std::int64_t id_of(double value, std::int64_t rows) {
  const std::int64_t id = record_id(static_cast<float>(value));
  RECKON_CHECK(id >= 0);  // the data has been checked against the model
  RECKON_CHECK(id < rows);
  return id;
}

/// Sum of the vectors of `ids` ids a row; 1: an embedding. Of a table's rows that tensor ranks
/// share the ids of others add nothing here.
template <class T>
class EmbeddingRunner : public LayerRunner<T> {
 public:
  EmbeddingRunner(std::int64_t rows, std::int64_t width, std::int64_t ids, const Geometry& g)
      : table_rows_(rows),
        part_(g.part.rows),
        width_(width),
        ids_(ids),
        rows_each_(rows_of(g.output)),
        rows_(g.batch * rows_each_) {}
  void set_batch(std::int64_t samples) override { rows_ = samples * rows_each_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(rows_, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        T* y = m.output + r * width_;
        std::fill_n(y, width_, T{});
        for (std::int64_t k = 0; k < ids_; ++k) {
          const std::int64_t row = row_of(m, r, k);
          if (row < 0) continue;
          const T* x = m.weight + row * width_;
          for (std::int64_t j = 0; j < width_; ++j) y[j] += x[j];
        }
      }
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    if (m.weight_gradient == nullptr) return;
    // An id may come many times: each task has columns of its own and goes through all rows.
    pass.workers->run_pieces(width_, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = 0; r < rows_; ++r) {
        const T* dy = m.output_gradient + r * width_;
        for (std::int64_t k = 0; k < ids_; ++k) {
          const std::int64_t row = row_of(m, r, k);
          if (row < 0) continue;
          T* to = m.weight_gradient + row * width_;
          for (std::int64_t j = begin; j < end; ++j) to[j] += dy[j];
        }
      }
    });
  }

 private:
  /// Of this rank's rows; -1: it is another rank's.
  std::int64_t row_of(const LayerMemory<T>& m, std::int64_t r, std::int64_t k) const {
    const std::int64_t all = part_.total > 0 ? part_.total : table_rows_;
    const std::int64_t row =
        id_of(static_cast<double>(m.inputs[0][r * ids_ + k]), all) - part_.first;
    return row < table_rows_ ? std::max<std::int64_t>(row, -1) : -1;
  }
  std::int64_t table_rows_;
  RankRange part_;
  std::int64_t width_, ids_, rows_each_, rows_;
};

/// A learned vector added to each position.
template <class T>
class PositionEmbeddingRunner : public LayerRunner<T> {
 public:
  PositionEmbeddingRunner(const PositionEmbedding& op, const Geometry& g)
      : batch_(g.batch),
        width_(op.width),
        tokens_(g.output[0]),
        size_(tokens_ * op.width),
        part_(g.part.tokens) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      for (std::int64_t t = 0; t < tokens_; ++t) {
        const std::int64_t at = b * size_ + t * width_;
        const T *x = m.inputs[0] + at, *w = m.weight + part_.place_of(t) * width_;
        for (std::int64_t j = 0; j < width_; ++j) m.output[at + j] = x[j] + w[j];
      }
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(tokens_, kTokens, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = 0; b < batch_; ++b)
        for (std::int64_t t = begin; t < end; ++t) {
          const std::int64_t at = b * size_ + t * width_;
          const T* dy = m.output_gradient + at;
          if (T* dx = m.input_gradients[0])
            for (std::int64_t j = 0; j < width_; ++j) put(dx[at + j], m.accumulate[0] != 0, dy[j]);
          if (m.weight_gradient == nullptr) continue;
          T* to = m.weight_gradient + part_.place_of(t) * width_;
          for (std::int64_t j = 0; j < width_; ++j) to[j] += dy[j];
        }
    });
  }

 private:
  static constexpr std::int64_t kTokens = 16;  // of one task
  std::int64_t batch_, width_, tokens_, size_;
  TokenPart part_;
};

/// A learned vector put before the tokens.
template <class T>
class ClassTokenRunner : public LayerRunner<T> {
 public:
  ClassTokenRunner(const ClassToken& op, const Geometry& g)
      : batch_(g.batch), width_(op.width), size_(elements(g.inputs[0])) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      T* y = m.output + b * (size_ + width_);
      std::copy_n(m.weight, width_, y);
      std::copy_n(m.inputs[0] + b * size_, size_, y + width_);
    });
  }
  void backward(const LayerMemory<T>& m, const PassState&) override {
    for (std::int64_t b = 0; b < batch_; ++b) {
      const T* dy = m.output_gradient + b * (size_ + width_);
      if (m.weight_gradient != nullptr)
        for (std::int64_t j = 0; j < width_; ++j) m.weight_gradient[j] += dy[j];
      if (T* dx = m.input_gradients[0])
        for (std::int64_t i = 0; i < size_; ++i)
          put(dx[b * size_ + i], m.accumulate[0] != 0, dy[width_ + i]);
    }
  }

 private:
  std::int64_t batch_, width_, size_;
};

}  // namespace

template <class T>
Made<T> embedding(const Embedding& op, const Geometry& g) {
  return std::make_unique<EmbeddingRunner<T>>(op.rows, op.width, 1, g);
}
template <class T>
Made<T> embedding_bag(const EmbeddingBag& op, const Geometry& g) {
  return std::make_unique<EmbeddingRunner<T>>(op.rows, op.width, op.ids, g);
}
template <class T>
Made<T> position_embedding(const PositionEmbedding& op, const Geometry& g) {
  return std::make_unique<PositionEmbeddingRunner<T>>(op, g);
}
template <class T>
Made<T> class_token(const ClassToken& op, const Geometry& g) {
  return std::make_unique<ClassTokenRunner<T>>(op, g);
}
template Made<float> embedding<float>(const Embedding&, const Geometry&);
template Made<double> embedding<double>(const Embedding&, const Geometry&);
template Made<float> embedding_bag<float>(const EmbeddingBag&, const Geometry&);
template Made<double> embedding_bag<double>(const EmbeddingBag&, const Geometry&);
template Made<float> position_embedding<float>(const PositionEmbedding&, const Geometry&);
template Made<double> position_embedding<double>(const PositionEmbedding&, const Geometry&);
template Made<float> class_token<float>(const ClassToken&, const Geometry&);
template Made<double> class_token<double>(const ClassToken&, const Geometry&);

}  // namespace reckon::run
