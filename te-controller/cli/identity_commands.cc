// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/identity_commands.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <ctime>

#include "common/net/authority.h"
#include "common/os/file.h"
#include "te-controller/cli/table.h"
#include "te/v1/api.pb.h"

namespace te {
namespace {

constexpr int kControllerDays = 3650;
constexpr std::int64_t kLongestLifetimeS = 30 * 86400;
constexpr std::chrono::milliseconds kEnrolLimit{10000};

std::string day_of(std::int64_t seconds) {
  const std::time_t whole = seconds;
  std::tm broken{};
  gmtime_r(&whole, &broken);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &broken)};
}

/// The key first, readable by its owner alone: a certificate without a key is of no use.
Result<void> write_pair(const std::string& out, const std::string& name, const std::string& key,
                        const std::string& certificate) {
  if (auto done = replace_file(out + "/" + name + ".key", key, 0600); !done) return done;
  return replace_file(out + "/" + name + ".pem", certificate);
}

/// A new key with its certificate, written to `out`.
Result<void> issue(const Authority& authority, const CertificateOrder& order, const std::string& out) {
  const auto key = make_private_key();
  if (!key) return key.error();
  const auto request = make_request(*key, order.name);
  if (!request) return request.error();
  const auto certificate = authority.certify(*request, order);
  if (!certificate) return certificate.error();
  return write_pair(out, order.name, *key, *certificate);
}

std::string bad_name(const std::string& name) {
  return "'" + printable(name) + "' is no name for a certificate; it has letters, digits, '.', '_' and '-', 64 at most";
}

}  // namespace

int certs_init(const std::string& directory, const std::vector<std::string>& hosts, int days) {
  const auto authority = Authority::create(directory, days);
  if (!authority) return complain(authority.error().message, kRefused);
  const auto issued =
      issue(*authority, {kControllerName, CertificateUse::kServer, hosts, std::min(days, kControllerDays)}, directory);
  if (!issued) return complain(issued.error().message, kRefused);
  return show("made an authority in " + directory + " (ca.pem, ca.key, crl.pem), and the controller's certificate " +
              directory + "/te-controller.pem with its key\nkeep ca.key where only administrators can read it\n");
}

int certs_issue(const std::string& directory, const std::string& name, const std::vector<std::string>& hosts,
                const std::string& out, int days) {
  if (!is_certificate_name(name)) return complain(bad_name(name), kUsage);
  const bool server = name == kControllerName;
  if (!server && !hosts.empty()) return complain("--san is of use for 'te-controller' only", kUsage);
  const auto authority = Authority::open(directory);
  if (!authority) return complain(authority.error().message + "; 'tectl certs init' makes one", kRefused);
  const CertificateUse use = server ? CertificateUse::kServer : CertificateUse::kClient;
  const auto done = issue(*authority, {.name = name, .use = use, .hosts = hosts, .days = days}, out);
  if (!done) return complain(done.error().message, kRefused);
  return show("wrote " + out + "/" + name + ".pem and " + out + "/" + name + ".key\n");
}

int certs_revoke(const std::string& directory, const std::string& name_or_serial) {
  const auto authority = Authority::open(directory);
  if (!authority) return complain(authority.error().message, kRefused);
  const auto revoked = authority->revoke(name_or_serial);
  if (!revoked) return complain(revoked.error().message, kRefused);
  std::string text;
  for (const CertificateFacts& facts : *revoked) text += "revoked " + facts.name + ", serial " + facts.serial + "\n";
  return show(text + "bring " + directory + "/crl.pem to where 'agents: crl:' of the controller says\n");
}

int certs_list(const std::string& directory, bool json) {
  const auto authority = Authority::open(directory);
  if (!authority) return complain(authority.error().message, kRefused);
  const auto all = authority->list();
  if (!all) return complain(all.error().message, kRefused);
  const std::int64_t now_s = std::time(nullptr);
  Table table({"NAME", "SERIAL", "UNTIL", "STATE"});
  std::string objects;
  for (const Authority::Entry& entry : *all) {
    const bool expired = entry.facts.not_after_s < now_s;
    const std::string state = entry.revoked ? "revoked" : expired ? "expired" : "good";
    table.add({{entry.facts.name},
               {entry.facts.serial},
               {day_of(entry.facts.not_after_s)},
               {state, state == "good" ? Tone::kGood : Tone::kBad}});
    objects += (objects.empty() ? "" : ",") + std::string("{\"name\":\"") + entry.facts.name + "\",\"serial\":\"" +
               entry.facts.serial + "\",\"until\":\"" + day_of(entry.facts.not_after_s) + "\",\"state\":\"" + state +
               "\"}";
  }
  return show(json ? "{\"certificates\":[" + objects + "]}\n" : table.text(colour_wanted()));
}

Result<std::int64_t> parse_lifetime_s(const std::string& text) {
  const Error wrong{"'" + text + "' is no time; expected as 90s, 30m, 1h or 7d, 30 days at most"};
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end + 1 != text.data() + text.size() || number <= 0) return wrong;
  const std::int64_t unit_s = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : *end == 'd' ? 86400 : 0;
  if (unit_s == 0 || number > kLongestLifetimeS / unit_s) return wrong;
  return number * unit_s;
}

int certs_token(const std::string& directory, const std::string& node, const std::string& lifetime) {
  if (!is_certificate_name(node) || node == kControllerName) return complain(bad_name(node), kUsage);
  const auto lifetime_s = parse_lifetime_s(lifetime);
  if (!lifetime_s) return complain(lifetime_s.error().message, kUsage);
  const auto token = EnrolmentTokens(directory).make(node, *lifetime_s, std::time(nullptr));
  if (!token) return complain(token.error().message + "; 'tectl certs init' makes the directory", kRefused);
  return show(*token + "\n");
}

int enrol(const CallOptions& options, const std::string& node, const std::string& token, const std::string& out) {
  const auto target = target_of(options);
  if (!target) return complain(target.error().message, kUsage);
  if (!target->socket_path.empty())
    return complain("enrolling goes over TCP: --api HOST:PORT, as 'api: listen:' of the controller says", kUsage);
  if (::access(out.c_str(), W_OK | X_OK) != 0) return complain(errno_error("write to " + out).message, kRefused);
  const auto key = make_private_key();
  if (!key) return complain(key.error().message, kRefused);
  const auto request = make_request(*key, node);
  if (!request) return complain(request.error().message, kRefused);
  v1::EnrolRequest wanted;
  wanted.set_node(node);
  wanted.set_token(token);
  wanted.set_csr(*request);
  std::string body;
  (void)google::protobuf::util::MessageToJsonString(wanted, &body);
  const auto reply = call_api(*target, "POST", "/v1/enrol", kEnrolLimit, body);
  if (!reply) return complain(reply.error().message, kUnreachable);
  if (reply->status != 200) return complain("te-controller refused: " + error_text(reply->body), kRefused);
  v1::EnrolReply signed_reply;
  if (!read_reply(reply->body, signed_reply)) return complain("cannot read the answer of te-controller", kRefused);
  const auto facts = facts_of_pem(signed_reply.certificate(), "the answer of te-controller");
  if (!facts) return complain(facts.error().message, kRefused);
  if (facts->name != node) return complain("te-controller signed for '" + printable(facts->name) + "'", kRefused);
  auto written = write_pair(out, node, *key, signed_reply.certificate());
  if (written) written = replace_file(out + "/ca.pem", signed_reply.ca());
  if (!written) return complain(written.error().message, kRefused);
  return show("enrolled " + node + " until " + day_of(facts->not_after_s) + ": " + out + "/" + node + ".pem, " + out +
              "/" + node + ".key, " + out + "/ca.pem\n");
}

}  // namespace te
