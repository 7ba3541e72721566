#include <cuda_runtime.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

// A block at a time, a warp at a time, a lane at a time until it waits for others. Fibers begin by
// ucontext and switch by _setjmp and _longjmp, which ask the kernel nothing; they live on from
// block to block.
namespace reckon::emulator {

Place here;

namespace {

enum class State { ready, at_warp_barrier, at_block_barrier, done };
constexpr std::size_t kStack = 256 * 1024;

struct Fiber {
  jmp_buf place;
  bool begun = false;
  std::unique_ptr<unsigned char[]> stack{new unsigned char[kStack]};
  State state = State::ready;
  dim3 thread{0, 0, 0};
};
std::deque<Fiber> fibers;  // which do not move: others' stacks know where they are
jmp_buf scheduler;
std::size_t current = 0, threads = 0;
const std::function<void()>* body = nullptr;
alignas(16) unsigned char dynamic[256 * 1024];
std::vector<Slot> slots_of_warp;
bool reversed = false;
std::mutex one_at_a_time;  // launches of ranks that are threads

void stop(const char* why) {
  std::fprintf(stderr, "emulated device: %s (block %u %u %u)\n", why, here.block.x, here.block.y,
               here.block.z);
  std::abort();
}

void wait(State state) {
  Fiber& fiber = fibers[current];
  fiber.state = state;
  if (_setjmp(fiber.place) == 0) _longjmp(scheduler, 1);
}

void enter() {
  while (true) {
    (*body)();
    wait(State::done);
  }
}

void begin(Fiber& fiber) {
  fiber.begun = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack.get();
  context.uc_stack.ss_size = kStack;
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

void resume(std::size_t t) {
  current = t;
  here.thread = fibers[t].thread;
  if (_setjmp(scheduler) != 0) return;
  if (fibers[t].begun) _longjmp(fibers[t].place, 1);
  begin(fibers[t]);
}

/// Until all lanes of the warp wait for the block, or are done.
void run_warp(std::size_t first) {
  const std::size_t last = std::min(first + 32, threads);
  while (true) {
    std::size_t at_warp = 0;
    for (std::size_t i = first; i < last; ++i) {
      const std::size_t t = reversed ? last - 1 - (i - first) : i;
      if (fibers[t].state == State::ready) resume(t);
    }
    for (std::size_t t = first; t < last; ++t) {
      at_warp += fibers[t].state == State::at_warp_barrier ? 1u : 0u;
    }
    if (at_warp == 0) return;
    if (at_warp != last - first) stop("not all lanes of a warp reach a shuffle");
    for (std::size_t t = first; t < last; ++t) fibers[t].state = State::ready;
  }
}

void run_block() {
  for (std::size_t t = 0; t < threads; ++t) fibers[t].state = State::ready;
  while (true) {
    const std::size_t warps = (threads + 31) / 32;
    for (std::size_t w = 0; w < warps; ++w) run_warp((reversed ? warps - 1 - w : w) * 32);
    std::size_t waiting = 0, done = 0;
    for (std::size_t t = 0; t < threads; ++t) {
      waiting += fibers[t].state == State::at_block_barrier ? 1u : 0u;
      done += fibers[t].state == State::done ? 1u : 0u;
    }
    if (waiting == 0) return;
    if (done > 0) stop("not all threads of a block reach a barrier");
    for (std::size_t t = 0; t < threads; ++t) fibers[t].state = State::ready;
  }
}

}  // namespace

void run(dim3 grid, dim3 block, std::size_t shared, const std::function<void()>& kernel) {
  const std::lock_guard lock(one_at_a_time);
  if (shared > sizeof(dynamic)) stop("too much shared memory");
  std::memset(dynamic, 0x7f, sizeof(dynamic));  // never what the kernel hopes for
  body = &kernel;
  reversed = !reversed;
  threads = std::size_t{block.x} * block.y * block.z;
  while (fibers.size() < threads) fibers.emplace_back();
  slots_of_warp.resize((threads + 31) / 32 * 32);
  here.block_size = block;
  here.grid_size = grid;
  for (std::size_t t = 0; t < threads; ++t)
    fibers[t].thread = dim3(unsigned(t % block.x), unsigned(t / block.x % block.y),
                            unsigned(t / block.x / block.y));
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        here.block = dim3(x, y, z);
        run_block();
      }
}

void block_barrier() { wait(State::at_block_barrier); }
void warp_barrier() { wait(State::at_warp_barrier); }
unsigned char* shared_memory() { return dynamic; }
Slot* warp_slots() { return slots_of_warp.data() + current / 32 * 32; }
unsigned lane() { return static_cast<unsigned>(current % 32); }

}  // namespace reckon::emulator
