// Access control: API key, Host header, and Origin header, against DNS rebinding and cross-site requests.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace braid::apps::serve {

// A request without its body. Names of fields are in lower case.
struct RequestHead {
  std::string method, target;  // target: a path with its query, or "*"
  std::string authority;       // host and port of a target in absolute form, which count instead of the field Host
  bool keep_alive = false;
  bool version_1_1 = true;
  std::vector<std::pair<std::string, std::string>> fields;

  // Values of all fields of that name.
  std::vector<std::string_view> all(std::string_view name) const;
};

struct Access {
  std::string key;                        // empty: none is needed
  std::vector<std::string> hosts;         // names besides those of this machine's own loopback, in lower case
  std::vector<std::string> origins = {};  // whose pages may send requests, as origin_of() writes them
};

// ApiError(400): no host or several; ApiError(403): the Host header is not a name of the server (DNS rebinding), or the
// page is of another origin that is not among access.origins. `address`: of the server's end of this connection.
void check_host(const Access& access, const RequestHead& head, std::string_view address);
// The origin of the page that sends the request, where access.origins has it (CORS); else "".
std::string allowed_origin(const Access& access, const RequestHead& head);
// The scheme, http or https, and the host of a page in lower case, without a default port; "" for other texts.
std::string origin_of(std::string_view url);
// ApiError(401) unless the request has the key, once, as "Authorization: Bearer KEY". Takes the same time for any key.
void check_key(const Access& access, const RequestHead& head);

// The key of a file that nobody but its owner can read, or of a credential of systemd ($CREDENTIALS_DIRECTORY): its
// text without the line end. Error(setting).
std::string read_key_file(const std::string& file);
// Whether the address is this machine's own: 127.0.0.0/8 or ::1.
bool is_loopback(std::string_view address);

std::string lower(std::string_view text);  // ASCII letters in lower case

}  // namespace braid::apps::serve
