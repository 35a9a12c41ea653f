/** Headers of a single connection (RFC 9110 §7.6.1). */
export const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
]

/** Patterns of client credentials and gateway-only headers (specification, "stripping and injection"). */
export const neverForwarded = [
  ...hopByHop,
  "authorization",
  "proxy-authorization",
  "x-api-key",
  "x-aih-api-key",
  "x-upstream-api-key",
  "x-upstream-key",
  // credential headers of other providers and proxies
  "api-key",
  "apikey",
  "x-apikey",
  "x-api-token",
  "x-auth-key",
  "x-auth-token",
  "x-access-token",
  "x-goog-api-key",
  "x-goog-iam-authorization-token",
  "x-litellm-(?:api-)?key",
  "x-portkey-(?:api|virtual)-key",
  "helicone-auth",
  "cf-aig-authorization",
  "ocp-apim-subscription-key",
  "x-functions-key",
  "x-ms-authorization-auxiliary",
  "x-amz-security-token",
  // these select another upstream or model at proxies that know them
  "x-portkey-(?:config|provider|custom-host)",
  "helicone-(?:fallbacks|target-url|model-override)",
  "azureml-model-deployment",
  "x-trusted-gateway-identity",
  "x-trusted-gateway-signature",
  "x-svc-.*",
  "traceparent",
  // Policy and price were decided for the method of the request line.
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  // framing: the HTTP client sets it for the forwarded body
  "host",
  "content-length",
  "expect"
]

/** A pattern takes a third of the time of a set look-up: no lower-case copy and no hash per name. */
export const namePattern = (names: ReadonlyArray<string>): RegExp => new RegExp(`^(?:${names.join("|")})$`, "i")
