// SPDX-License-Identifier: Apache-2.0
#include "common/net/authority.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "common/os/file.h"
#include "common/os/unique_fd.h"

namespace te {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRootName = "roce-te CA";
constexpr const char* kUsedEnd = ".used";
constexpr std::size_t kTokenDigits = 32;  // 128 bits
constexpr std::size_t kTokenFileBytes = 256;
constexpr std::int64_t kTokenKeptS = 7 * 86400;  // after it expired: a late try is told why

Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return errno_error("make directory " + path);
}

/// Held while the revocation list is rewritten.
Result<UniqueFd> lock(const std::string& directory) {
  UniqueFd file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || ::flock(file.get(), LOCK_EX) != 0) return errno_error("lock " + directory);
  return file;
}

struct TokenRecord {
  std::string node;
  std::int64_t expires_s = 0;
};

std::optional<TokenRecord> read_token(const std::string& path) {
  const auto text = read_regular_file(path, kTokenFileBytes);
  if (!text) return std::nullopt;
  TokenRecord record;
  const std::size_t space = text->find(' ');
  if (space == std::string::npos) return std::nullopt;
  record.node = text->substr(0, space);
  record.expires_s = std::strtoll(text->c_str() + space, nullptr, 10);
  return record;
}

std::string file_of(const std::string& token) { return sha256_hex(token); }

Result<std::set<std::string>> read_list(const std::string& path) {
  if (!fs::exists(path)) return std::set<std::string>();
  const auto text = read_file(path);
  if (!text) return text.error();
  auto serials = revoked_serials(*text);
  if (!serials) return with_context(std::move(serials).error(), path);
  return serials;
}

}  // namespace

Result<Authority> Authority::create(const std::string& directory, int days) {
  const std::string key_path = directory + "/ca.key";
  if (fs::exists(key_path)) return Error{key_path + " exists: there is an authority already; name another directory"};
  std::error_code failed;
  if (const auto parent = fs::path(directory).parent_path(); !parent.empty()) fs::create_directories(parent, failed);
  for (const std::string& made : {directory, directory + "/issued", directory + "/tokens"}) {
    if (auto done = make_directory(made); !done) return done.error();
  }
  const auto root = make_root(kRootName, days);
  if (!root) return root.error();
  auto signer = Signer::load(root->certificate, root->key);
  if (!signer) return signer.error();
  const auto empty_list = signer->revocation_list({});
  if (!empty_list) return empty_list.error();
  for (const auto& [name, text, mode] :
       {std::tuple{"/ca.pem", root->certificate, mode_t{0644}}, std::tuple{"/crl.pem", *empty_list, mode_t{0644}},
        std::tuple{"/ca.key", root->key, mode_t{0600}}}) {
    if (auto done = replace_file(directory + name, text, mode); !done) return done.error();
  }
  return Authority(directory, root->certificate, *std::move(signer));
}

Result<Authority> Authority::open(const std::string& directory) {
  auto certificate = read_file(directory + "/ca.pem");
  if (!certificate) return with_context(std::move(certificate).error(), "open the certificate authority");
  const auto key = read_file(directory + "/ca.key");
  if (!key) return with_context(key.error(), "open the certificate authority");
  auto signer = Signer::load(*certificate, *key);
  if (!signer) return with_context(std::move(signer).error(), directory);
  return Authority(directory, *std::move(certificate), *std::move(signer));
}

Result<std::string> Authority::certify(std::string_view request_pem, const CertificateOrder& order) const {
  auto certificate = signer_.certify(request_pem, order);
  if (!certificate) return certificate;
  const auto facts = facts_of_pem(*certificate, "the new certificate");
  if (!facts) return facts.error();
  const auto kept = replace_file(directory_ + "/issued/" + facts->serial + ".pem", *certificate);
  if (!kept) return kept.error();
  return certificate;
}

Result<std::vector<Authority::Entry>> Authority::list() const {
  const auto revoked = read_list(directory_ + "/crl.pem");
  if (!revoked) return revoked.error();
  std::vector<Entry> entries;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(directory_ + "/issued", failed)) {
    if (file.path().extension() != ".pem") continue;
    const auto pem = read_file(file.path());
    if (!pem) return pem.error();
    const auto facts = facts_of_pem(*pem, file.path());
    if (!facts) return facts.error();
    entries.push_back({*facts, revoked->contains(facts->serial)});
  }
  if (failed) return Error{"read " + directory_ + "/issued: " + failed.message()};
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.facts.name, a.facts.not_after_s, a.facts.serial) <
           std::tie(b.facts.name, b.facts.not_after_s, b.facts.serial);
  });
  return entries;
}

Result<std::vector<CertificateFacts>> Authority::revoke(const std::string& name_or_serial) const {
  const auto held = lock(directory_);
  if (!held) return held.error();
  const auto all = list();
  if (!all) return all.error();
  auto serials = read_list(directory_ + "/crl.pem");
  if (!serials) return std::move(serials).error();
  std::vector<CertificateFacts> now;
  bool known = false;
  for (const Entry& entry : *all) {
    const bool meant = entry.facts.name == name_or_serial || entry.facts.serial == name_or_serial;
    known = known || meant;
    if (!meant || entry.revoked) continue;
    now.push_back(entry.facts);
    serials->insert(entry.facts.serial);
  }
  if (now.empty()) {
    return Error{known ? "every certificate of '" + name_or_serial + "' is revoked already"
                       : "no certificate of '" + name_or_serial + "' was issued from " + directory_};
  }
  const auto text = signer_.revocation_list(*serials);
  if (!text) return text.error();
  if (const auto done = replace_file(directory_ + "/crl.pem", *text); !done) return done.error();
  return now;
}

std::string_view to_string(TokenFault fault) {
  switch (fault) {
    case TokenFault::kNone:
      return "good";
    case TokenFault::kUnknown:
      return "unknown token";
    case TokenFault::kUsed:
      return "used token";
    case TokenFault::kExpired:
      return "expired token";
    case TokenFault::kOtherNode:
      return "token of another node";
  }
  return "";
}

Result<std::string> EnrolmentTokens::make(const std::string& node, std::int64_t lifetime_s, std::int64_t now_s) const {
  forget_old(now_s);
  auto token = random_hex(kTokenDigits / 2);
  if (!token) return token;
  const std::string record = node + " " + std::to_string(now_s + lifetime_s) + "\n";
  const auto written = replace_file(directory_ + "/" + file_of(*token), record, 0600);
  if (!written) return written.error();
  return token;
}

TokenFault EnrolmentTokens::check(const std::string& token, const std::string& node, std::int64_t now_s) const {
  const std::string path = directory_ + "/" + file_of(token);
  const auto record = read_token(path);
  if (!record) return fs::exists(path + kUsedEnd) ? TokenFault::kUsed : TokenFault::kUnknown;
  if (now_s >= record->expires_s) return TokenFault::kExpired;
  return record->node == node ? TokenFault::kNone : TokenFault::kOtherNode;
}

Result<void> EnrolmentTokens::use_up(const std::string& token) const {
  const std::string path = directory_ + "/" + file_of(token);
  if (std::rename(path.c_str(), (path + kUsedEnd).c_str()) != 0) return errno_error("use up the token");
  return {};
}

void EnrolmentTokens::forget_old(std::int64_t now_s) const {
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(directory_, ignored)) {
    const auto record = read_token(file.path());
    if (record && record->expires_s + kTokenKeptS < now_s) fs::remove(file.path(), ignored);
  }
}

}  // namespace te
