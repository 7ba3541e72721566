#include "executor/comm/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "sim/base/check.h"

namespace reckon {

namespace {
const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw_out(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

/// libcrypto's functions return 1 where all is well.
void check(int result, const char* what) {
  if (result != 1) throw std::runtime_error(std::string("libcrypto: ") + what + " failed");
}
}  // namespace

void fill_randomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw std::runtime_error(std::string("no random numbers: getrandom: ") +
                               std::strerror(errno));
    bytes = bytes.subspan(std::size_t(got));
  }
}

Nonce random_nonce() {
  Nonce nonce;
  fill_randomly(nonce);
  return nonce;
}

Digest hmac_sha256(const Key& key, std::span<const std::byte> message) {
  Digest digest;
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), key.data(), int(key.size()), raw(message), message.size(), raw_out(digest),
           &length) == nullptr)
    throw std::runtime_error("libcrypto: HMAC-SHA256 failed");
  RECKON_CHECK(length == digest.size());
  return digest;
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  RECKON_CHECK(a.size() == b.size());
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void Gmac::Free::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

Gmac::Gmac(const Key& key) : context_(EVP_CIPHER_CTX_new()) {
  RECKON_CHECK(context_ != nullptr);
  check(EVP_EncryptInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr, raw(key), nullptr),
        "AES-256-GCM");
}

Tag Gmac::tag(std::uint64_t number, std::uint32_t part, std::span<const std::byte> message) {
  std::array<std::byte, 12> nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  std::memcpy(nonce.data() + sizeof number, &part, sizeof part);
  check(EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, raw(nonce)), "GMAC's nonce");
  constexpr std::size_t kAtOnce = std::size_t{1} << 30;  // libcrypto counts in int
  int length = 0;
  while (!message.empty()) {
    const auto piece = message.first(std::min(message.size(), kAtOnce));
    check(EVP_EncryptUpdate(context_.get(), nullptr, &length, raw(piece), int(piece.size())),
          "GMAC");
    message = message.subspan(piece.size());
  }
  Tag tag;
  check(EVP_EncryptFinal_ex(context_.get(), raw_out(tag), &length), "GMAC");
  check(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, int(tag.size()), tag.data()),
        "GMAC's tag");
  return tag;
}

}  // namespace reckon
