#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reckon::test {

/// A store in this process that answers as a test wants, also wrongly. One request a connection.
class FakeStore {
 public:
  struct Request {
    std::string path, query;                     // as they came, encoded
    std::map<std::string, std::string> headers;  // by their names in lower case
    int number = 0;                              // from 1
    std::string header(const std::string& name) const {
      const auto found = headers.find(name);
      return found == headers.end() ? "" : found->second;
    }
    bool lists() const { return query.find("list-type=2") != std::string::npos; }
  };
  struct Answer {
    int status = 200;
    std::string body;
    std::vector<std::string> headers{};  // whole lines
    bool never = false;                  // the connection stays open without a word
  };
  using Handler = std::function<Answer(const Request&)>;

  explicit FakeStore(Handler handler) : handler_(std::move(handler)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size);
    ::listen(listener_, 64);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepts_ = std::jthread([this] { accept_all(); });
  }
  ~FakeStore() {
    ::shutdown(listener_, SHUT_RDWR);
    accepts_.join();
    ::close(listener_);
    const std::lock_guard lock(mutex_);
    for (const int socket : open_) ::shutdown(socket, SHUT_RDWR);
    serves_.clear();
    for (const int socket : open_) ::close(socket);
  }
  FakeStore(const FakeStore&) = delete;
  FakeStore& operator=(const FakeStore&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }

 private:
  void accept_all() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      const std::lock_guard lock(mutex_);
      open_.push_back(socket);
      serves_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string text;
    char piece[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::recv(socket, piece, sizeof piece, 0);
      if (count <= 0) return;
      text.append(piece, static_cast<std::size_t>(count));
    }
    const Answer answer = handler_(parse(text));
    if (answer.never) return;
    std::string out =
        "HTTP/1.1 " + std::to_string(answer.status) + " Said\r\nConnection: close\r\n";
    for (const std::string& header : answer.headers) out += header + "\r\n";
    out += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body;
    ::send(socket, out.data(), out.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
  }

  Request parse(const std::string& text) {
    Request request{.path = {}, .query = {}, .headers = {}, .number = ++requests_};
    const std::size_t begin = text.find(' ') + 1;
    const std::string place = text.substr(begin, text.find(' ', begin) - begin);
    request.path = place.substr(0, place.find('?'));
    if (place.size() > request.path.size()) request.query = place.substr(request.path.size() + 1);
    for (std::size_t at = text.find("\r\n") + 2; text.compare(at, 2, "\r\n") != 0;) {
      const std::size_t end = text.find("\r\n", at), colon = text.find(':', at);
      std::string name = text.substr(at, colon - at);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      request.headers[name] = text.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    return request;
  }

  Handler handler_;
  int listener_ = -1;
  unsigned port_ = 0;
  std::atomic<int> requests_{0};
  std::mutex mutex_;
  std::vector<int> open_;
  std::vector<std::jthread> serves_;
  std::jthread accepts_;
};

/// What ListObjectsV2 answers: `more` are elements beside the objects.
inline std::string list_of(const std::vector<std::pair<std::string, std::size_t>>& objects,
                           const std::string& more = "") {
  std::string xml = "<ListBucketResult>" + more;
  for (const auto& [key, size] : objects)
    xml += "<Contents><Key>" + key + "</Key><Size>" + std::to_string(size) + "</Size></Contents>";
  return xml + "</ListBucketResult>";
}

}  // namespace reckon::test
