// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "te-controller/cli/call.h"

namespace te {

/// 'tectl certs' and 'tectl enrol'. Each returns an exit status.

/// Makes an authority in `directory`, and the controller's certificate there, good for `hosts`.
int certs_init(const std::string& directory, const std::vector<std::string>& hosts, int days);
/// Writes NAME.pem and NAME.key to `out`: for a node, for somebody who uses the API over TCP, or for te-controller,
/// which alone is reached by `hosts`.
int certs_issue(const std::string& directory, const std::string& name, const std::vector<std::string>& hosts,
                const std::string& out, int days);
int certs_revoke(const std::string& directory, const std::string& name_or_serial);
int certs_list(const std::string& directory, bool json);
/// Prints a new enrolment token.
int certs_token(const std::string& directory, const std::string& node, const std::string& lifetime);

/// Makes a key in `out`, has the controller sign a certificate for it, and writes both with the authority's
/// certificate.
int enrol(const CallOptions& options, const std::string& node, const std::string& token, const std::string& out);

/// Reads "90s", "30m", "1h" or "7d".
Result<std::int64_t> parse_lifetime_s(const std::string& text);

}  // namespace te
