import type { ExposureDecision } from "../../src/policy/routes/Exposure.ts"

/**
 * The specification's table of exposure modes, written down apart from the code that follows it.
 *
 * - `ui`: `/ui` and below. `support`: what a browser loads beside it. `dashboard`: the same paths, when something
 *   changes.
 * - `admin`: admin-like paths. `adminSupport`: one of those that the UI reads.
 * - `ordinary`: every other path.
 */
export type Group = "ui" | "support" | "dashboard" | "admin" | "adminSupport" | "ordinary"

type Ui = "disabled" | "operator_only" | "explicitly_exposed" | "trusted_ingress"
type Admin = "disabled" | "operator_only" | "explicitly_exposed"
export type Caller = "nobody" | "key" | "identified"

const byMode: Readonly<Record<Ui, Readonly<Record<Caller, ExposureDecision>>>> = {
  disabled: { nobody: "unsupported", key: "unsupported", identified: "unsupported" },
  operator_only: { nobody: "unauthenticated", key: "forbidden", identified: "forward" },
  explicitly_exposed: { nobody: "unauthenticated", key: "forward", identified: "forward" },
  trusted_ingress: { nobody: "forward", key: "forward", identified: "forward" }
}
const gatewayAuth = byMode.explicitly_exposed

export const decision = (ui: Ui, admin: Admin, group: Group, caller: Caller): ExposureDecision => {
  const trusted = ui === "trusted_ingress"
  /** "allowed only when all hold": trusted ingress, explicitly exposed, and the lists. */
  const trustedAdmin = trusted && admin === "explicitly_exposed"
  switch (group) {
    case "ui":
      return byMode[ui][caller]
    case "support":
      return trusted ? "forward" : gatewayAuth[caller]
    case "dashboard":
      return trustedAdmin ? "forward" : gatewayAuth[caller]
    case "admin":
      return trustedAdmin ? "forward" : byMode[admin][caller]
    case "adminSupport":
      return trusted ? "forward" : byMode[admin][caller]
    case "ordinary":
      return gatewayAuth[caller]
  }
}

/** The specification's sensitive groups beside `/ui`, and what the reference adds. */
export const adminLike = [
  ..."/key /keys /user /team /api /audit /config /config_overrides /credentials /files /guardrails /health".split(" "),
  ..."/mcp /mcp-rest /model_hub /model_hub_table /prompts /provider /spend /global /budget /customer".split(" "),
  ..."/organization /utils /v2".split(" "),
  ..."/alerting /cache /callbacks /cloudzero /email /policies /project /reload /router /search_tools".split(" "),
  ..."/sso /tag /v3 /v1/agents /v1/mcp /v1/memory /v1/tool /v1/workflows".split(" "),
  ..."/model/new /model/delete /invitation /update /add /scim /jwt /vector_store /get /settings /debug".split(" "),
  ..."/v1/organization /v1/realtime/client_secrets /v1/realtime/sessions /v1/chatkit/sessions /v1/organizations /v1/projects /v1/model /v1/key /v1/vector_store /v1/config".split(
    " "
  ),
  ..."/v1/load_lora_adapter /v1/fine_tuning/checkpoints /v1/dashboard".split(" ")
]

export const sensitive = ["/ui", ...adminLike]

const of = (group: Group, method: string, ...paths: ReadonlyArray<string>) =>
  paths.map((path) => ({ group, method, path }))

/** Requests of every group. */
export const requests = [
  ...of("ui", "GET", "/ui", "/ui/", "/ui/index.html"),
  ...of("ui", "POST", "/ui/login"),
  ...of("support", "GET", "/", "/get_image", "/in_product_nudges", "/login", "/logout", "/models"),
  ...of("support", "GET", "/upstream/.well-known/upstream-ui-config", "/upstream-asset-prefix/_next/main.js"),
  ...of("support", "GET", "/model_group/info", "/public/logo.png", "/schedule/x"),
  ...of("support", "POST", "/login", "/logout"),
  ...of("dashboard", "POST", "/model_group/x", "/public/x", "/schedule/x"),
  ...of("dashboard", "DELETE", "/login", "/models"),
  ...of("adminSupport", "GET", "/user/info", "/health/readiness", "/v2/login", "/get/config", "/model/info"),
  ...of("adminSupport", "GET", "/v1/model/info"),
  ...of("adminSupport", "POST", "/v2/login"),
  ...of("admin", "POST", "/user/info", "/health/test", "/model/new", "/model/delete"),
  ...adminLike.flatMap((path) => of("admin", "DELETE", path, `${path}/`, `${path}/below/it`)),
  ...of("admin", "GET", "/key/list", "/user/list", "/v2/model/info", "/health"),
  ...of("ordinary", "GET", "/v1/files", "/v1/chat/completions", "/metrics", "/keyring", "/uix", "/v1/modelx"),
  ...of("ordinary", "POST", "/v1/audio/speech", "/rerank", "/v1/models"),
  ...of("ordinary", "PATCH", "/v1/threads/t1")
]

/** What an operator lists who means all of these paths: outside the public API a `/*` alone opens only what is exposed. */
export const everyPath: ReadonlyArray<string> = [
  "/*",
  ...new Set(requests.flatMap(({ group, path }) => (/^(?:support|dashboard|ordinary)$/.test(group) ? [path] : [])))
]

/** Other ways to write a path: by case, escapes, width, blanks, dots, delimiters and detours. */
export const disguises = (path: string): ReadonlyArray<string> => {
  const [first = "", ...rest] = path.slice(1).split("/")
  const below = rest.length === 0 ? "" : `/${rest.join("/")}`
  const named = (name: string) => `/${name}${below}`
  const escaped = (text: string, lower = false) =>
    [...Buffer.from(text)]
      .map(
        (byte) => `%${lower ? byte.toString(16).padStart(2, "0") : byte.toString(16).toUpperCase().padStart(2, "0")}`
      )
      .join("")
  const wide = [...first].map((c) => (/[!-~]/.test(c) ? String.fromCodePoint(c.charCodeAt(0) + 0xfee0) : c)).join("")
  return [
    path.toUpperCase(),
    named(first.charAt(0).toUpperCase() + first.slice(1)),
    `/${escaped(first)}${below}`,
    `/${escaped(first, true)}${below}`,
    `/${first.charAt(0)}${escaped(first.slice(1))}${below}`,
    `/${escaped(escaped(first))}${below}`,
    named(escaped(wide)),
    named(escaped(`${first}\u200b`)),
    named(escaped(`\ufeff${first}`)),
    ...["%20", "%09", "%00", "%0a", ".", "..", "%2e", ";a=b", "%3b", "%20.", "%c2%a0", "%7f", "%23"].map((end) =>
      named(first + end)
    ),
    ...["%20", "%c2%a0", "%e3%80%80"].map((begin) => named(begin + first)),
    `/${path}`,
    `/.${path}`,
    `/..${path}`,
    `/v1/..${path}`,
    `/v1/%2e%2e${path}`,
    `/v1/.%2e${path}`,
    `/v1%2f..${path}`,
    `/v1/..%2f${path.slice(1)}`,
    `/v1/..%5c${path.slice(1)}`,
    `/v1/..\\${path.slice(1)}`,
    `/v1/%c0%ae%c0%ae${path}`,
    `/v1/%ef%bc%8e%ef%bc%8e${path}`,
    `/v1/${escaped("\u2025")}${path}`,
    `/%ef%bc%8f${path.slice(1)}`,
    `/${first}%ef%bc%8f${rest.join("/")}`,
    `\\${path.slice(1)}`,
    `/%5c${path.slice(1)}`,
    `/%2f${path.slice(1)}`,
    `${path}//x`,
    `${path}/./x`,
    `${path}/../${first}/x`,
    `${path}%2fx`,
    `${path}%5cx`,
    `${path}#x`,
    `https://upstream.test${path}`
  ]
}
