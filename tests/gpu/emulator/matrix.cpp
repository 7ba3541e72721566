#include <cuda_runtime.h>

// The matrix instructions of a warp, element by element, after the tables of the PTX ISA: lanes lay
// down what they hold, meet, and each computes what it is given.
namespace reckon::emulator {
namespace {

std::uint16_t half_of(std::uint32_t word, unsigned upper) {
  return static_cast<std::uint16_t>(upper != 0 ? word >> 16 : word);
}

}  // namespace

void multiply_add(float (&c)[4], const std::uint32_t* a, const std::uint32_t* b,
                  float (*value)(std::uint16_t)) {
  Slot* slots = warp_slots();
  for (unsigned k = 0; k < 4; ++k) slots[lane()].word[k] = a[k];
  for (unsigned k = 0; k < 2; ++k) slots[lane()].word[4 + k] = b[k];
  warp_barrier();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const Slot& of_a = slots[row % 8 * 4 + k % 8 / 2];
      const Slot& of_b = slots[column * 4 + k % 8 / 2];
      sum += value(half_of(of_a.word[row / 8 + k / 8 * 2], k % 2)) *
             value(half_of(of_b.word[4 + k / 8], k % 2));
    }
    c[i] += sum;
  }
  warp_barrier();
}

void load_matrices(std::uint32_t (&r)[4], const void* row, bool transposed) {
  Slot* slots = warp_slots();
  std::memcpy(slots[lane()].word, row, 16);
  warp_barrier();
  const auto at = [&](unsigned matrix, unsigned i, unsigned j) {
    const std::uint32_t word = slots[matrix * 8 + i].word[j / 2];
    return j % 2 != 0 ? word >> 16 : word & 0xffffu;
  };
  const unsigned g = lane() / 4, t = lane() % 4 * 2;
  for (unsigned m = 0; m < 4; ++m)
    r[m] =
        transposed ? at(m, t, g) | (at(m, t + 1, g) << 16) : at(m, g, t) | (at(m, g, t + 1) << 16);
  warp_barrier();
}

}  // namespace reckon::emulator
