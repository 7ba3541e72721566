#pragma once
#include <cstdlib>
#include <span>
#include <string>

#include "executor/comm/socket.h"

// As much of HTTP/1.1 as these tests need: one connection that is kept.
namespace reckon::test {

struct HttpAnswer {
  int status = 0;
  std::string head, body;
  bool last = false;  // of its connection
};

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, Seconds patience = Seconds{120})
      : deadline_(Deadline::after(patience)) {
    socket_ = connect_to({"127.0.0.1", port}, deadline_);
  }
  static std::string request(const std::string& method, const std::string& path,
                             const std::string& body = {}) {
    return method + ' ' + path +
           " HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }
  HttpAnswer get(const std::string& path) {
    send(request("GET", path));
    return answer();
  }
  HttpAnswer post(const std::string& path, const std::string& body) {
    send(request("POST", path, body));
    return answer();
  }
  void send(const std::string& text) {
    send_all(socket_, std::as_bytes(std::span(text)), deadline_);
  }
  /// Whether the server closes the connection and says nothing more. Waits for either.
  bool hangs_up() {
    try {
      more();
    } catch (const SocketError& e) {
      return e.kind != SocketError::Kind::timeout;
    }
    return false;
  }
  HttpAnswer answer() {
    while (got_.find("\r\n\r\n") == std::string::npos) more();
    const std::size_t head = got_.find("\r\n\r\n") + 4;
    const std::size_t at = got_.find("Content-Length: ");
    const std::size_t length =
        at < head ? std::strtoul(got_.c_str() + at + 16, nullptr, 10) : std::size_t{0};
    while (got_.size() < head + length) more();
    HttpAnswer answer{std::atoi(got_.c_str() + 9), got_.substr(0, head), got_.substr(head, length),
                      got_.substr(0, head).find("Connection: close") != std::string::npos};
    got_.erase(0, head + length);
    return answer;
  }

 private:
  void more() {
    if (!wait_readable(socket_, deadline_))
      throw SocketError(SocketError::Kind::timeout, "no answer");
    std::byte part[4096];
    const std::size_t n = receive_some(socket_, part);
    got_.append(reinterpret_cast<const char*>(part), n);
  }

  Deadline deadline_;
  Socket socket_;
  std::string got_;
};

}  // namespace reckon::test
