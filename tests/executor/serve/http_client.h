#pragma once
#include <cstdlib>
#include <span>
#include <string>

#include "executor/comm/socket.h"

// As much of HTTP/1.1 as these tests need: one connection that is kept.
namespace reckon::test {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, Seconds patience = Seconds{120})
      : deadline_(Deadline::after(patience)) {
    socket_ = connect_to({"127.0.0.1", port}, deadline_);
  }
  HttpAnswer get(const std::string& path) { return ask("GET " + path + " HTTP/1.1\r\n", ""); }
  HttpAnswer post(const std::string& path, const std::string& body) {
    return ask("POST " + path + " HTTP/1.1\r\n", body);
  }

 private:
  HttpAnswer ask(const std::string& line, const std::string& body) {
    const std::string text =
        line + "Host: test\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    send_all(socket_, std::as_bytes(std::span(text)), deadline_);
    while (got_.find("\r\n\r\n") == std::string::npos) more();
    const std::size_t head = got_.find("\r\n\r\n") + 4;
    const std::size_t at = got_.find("Content-Length: ");
    const std::size_t length =
        at < head ? std::strtoul(got_.c_str() + at + 16, nullptr, 10) : std::size_t{0};
    while (got_.size() < head + length) more();
    HttpAnswer answer{std::atoi(got_.c_str() + 9), got_.substr(head, length)};
    got_.erase(0, head + length);
    return answer;
  }
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
