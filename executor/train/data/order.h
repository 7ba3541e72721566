#pragma once
#include <cstdint>

// In which order samples are trained on: a pure function of (seed, position), so that the order
// does not depend on the number of ranks, and a resumed run needs no more state than the next
// position.
namespace reckon {

/// Sample number of the position-th sample of a training (from 0). Each epoch visits every one of
/// `samples` once, in an order of its own: a Feistel network of Philox rounds permutes the numbers,
/// and those beyond `samples` are walked over [Black & Rogaway 2002, "Ciphers with arbitrary finite
/// domains", section 4: cycle walking].
std::int64_t sample_at(std::uint64_t seed, std::int64_t samples, std::int64_t position);

}  // namespace reckon
