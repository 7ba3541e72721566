#ifdef RECKON_WITH_GLOO
#include "executor/comm/gloo/gloo_sends.h"

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <utility>

namespace reckon {
namespace {

using std::chrono::milliseconds;

class Buffer final : public gloo::transport::UnboundBuffer {
 public:
  Buffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<GlooSends> sends,
         milliseconds timeout)
      : UnboundBuffer(inner->ptr, inner->size),
        inner_(std::move(inner)),
        sends_(std::move(sends)),
        timeout_(timeout) {}

  bool waitRecv(int* rank, milliseconds timeout) override {
    return inner_->waitRecv(rank, limit(timeout));
  }
  bool waitSend(int* rank, milliseconds timeout) override {
    sends_->wait(*inner_, rank, limit(timeout));
    return true;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->send(to, slot, offset, bytes);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->recv(from, slot, offset, bytes);
  }
  void recv(std::vector<int> from, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override {
    inner_->recv(std::move(from), slot, offset, bytes);
  }

 private:
  milliseconds limit(milliseconds timeout) const {
    return timeout == gloo::transport::kUnsetTimeout ? timeout_ : timeout;
  }

  std::unique_ptr<UnboundBuffer> inner_;
  std::shared_ptr<GlooSends> sends_;
  milliseconds timeout_;
};

class Connections final : public gloo::transport::Context {
 public:
  Connections(std::shared_ptr<Context> inner, std::shared_ptr<GlooSends> sends)
      : Context(inner->rank, inner->size), inner_(std::move(inner)), sends_(std::move(sends)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override {
    return inner_->getPair(rank);
  }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override {
    inner_->setTimeout(getTimeout());  // it has none before Gloo's rendezvous sets ours
    return inner_->createPair(rank);
  }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* ptr,
                                                                      std::size_t size) override {
    return std::make_unique<Buffer>(inner_->createUnboundBuffer(ptr, size), sends_, getTimeout());
  }

 private:
  std::shared_ptr<Context> inner_;
  std::shared_ptr<GlooSends> sends_;
};

class Device final : public gloo::transport::Device {
 public:
  Device(std::shared_ptr<gloo::transport::Device> inner, std::shared_ptr<GlooSends> sends)
      : inner_(std::move(inner)), sends_(std::move(sends)) {}

  std::string str() const override { return inner_->str(); }
  const std::string& getPCIBusID() const override { return inner_->getPCIBusID(); }
  int getInterfaceSpeed() const override { return inner_->getInterfaceSpeed(); }
  bool hasGPUDirect() const override { return inner_->hasGPUDirect(); }
  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    return std::make_shared<Connections>(inner_->createContext(rank, size), sends_);
  }

 private:
  std::shared_ptr<gloo::transport::Device> inner_;
  std::shared_ptr<GlooSends> sends_;
};

}  // namespace

void GlooSends::wait(gloo::transport::UnboundBuffer& buffer, int* rank, milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!ended_) {
    waiting_.push_back(&buffer);
    lock.unlock();
    const auto leave = [&] {
      lock.lock();
      std::erase(waiting_, &buffer);
      lock.unlock();
    };
    bool sent = false;
    try {
      sent = buffer.waitSend(rank, timeout);
    } catch (...) {
      leave();
      throw;
    }
    leave();
    if (sent) return;
  } else {
    lock.unlock();
  }
  // A send that ended before is a success even now; for another one this throws at once, and says
  // only that no time was left.
  try {
    if (buffer.waitSend(rank, milliseconds(0))) return;
  } catch (const gloo::IoException&) {
  }
  throw gloo::IoException("a rank was lost before the send was done");
}

void GlooSends::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (gloo::transport::UnboundBuffer* buffer : waiting_) buffer->abortWaitSend();
}

std::shared_ptr<gloo::transport::Device> with_sends(std::shared_ptr<gloo::transport::Device> device,
                                                    std::shared_ptr<GlooSends> sends) {
  return std::make_shared<Device>(std::move(device), std::move(sends));
}

}  // namespace reckon
#endif
