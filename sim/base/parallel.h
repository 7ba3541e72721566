#pragma once
#include <cstddef>
#include <functional>

namespace reckon {

/// Calls body(k) for every k in [0, n), on `threads` threads (0: one a core). Each k runs exactly
/// once; callers write to slot k and reduce in order afterwards, so the number of threads never
/// changes a result. The first exception of any body is rethrown after all threads stopped.
void parallel_for(std::size_t n, int threads, const std::function<void(std::size_t)>& body);

}  // namespace reckon
