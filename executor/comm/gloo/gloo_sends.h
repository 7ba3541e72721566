#pragma once
#include <gloo/transport/device.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace reckon {

/// Who waits for a send on Gloo's connections of this process. When a connection fails, Gloo wakes
/// those who wait for a receive, but nobody whose send has begun and not ended: of the queue `tx_`
/// it tells bound buffers alone (gloo/transport/tcp/pair.cc, signalException), and its collectives
/// use unbound ones. Such a rank would stay to its deadline. From any thread.
class GlooSends {
 public:
  /// As buffer.waitSend(), until end(). Afterwards: what has been sent by then is sent, all else
  /// throws gloo::IoException.
  void wait(gloo::transport::UnboundBuffer& buffer, int* rank, std::chrono::milliseconds timeout);
  void end();

 private:
  std::mutex mutex_;
  bool ended_ = false;
  std::vector<gloo::transport::UnboundBuffer*> waiting_;
};

/// `device`, except that its buffers wait for sends by `sends`.
std::shared_ptr<gloo::transport::Device> with_sends(std::shared_ptr<gloo::transport::Device> device,
                                                    std::shared_ptr<GlooSends> sends);

}  // namespace reckon
