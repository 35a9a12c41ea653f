/** The path of the upstream's UI on the control origin. */
export const prefix = "/admin-ui/upstream-ui"

/**
 * First path segments that the UI requests at the upstream's root. Below the prefix they map to the root; every other
 * path maps to `/ui`.
 */
const rootSegments = [
  ...["upstream-asset-prefix", "upstream", "v1", "v2", "v3", "get_image", "get", "public", "config", "health", "key"],
  ...["in_product_nudges", "model", "model_group", "models", "organization", "policies", "project", "prompts", "sso"],
  ...["tag", "team", "user"]
]

/** Maps between paths on the control origin and paths at the upstream. */
export interface UpstreamUiPaths {
  /** The upstream's path and query for a request target; `undefined` if the target has no counterpart. */
  readonly upstreamTarget: (target: string) => string | undefined
  /**
   * The `Location` for a client that may follow it with its operator token. The upstream's own addresses move below the
   * prefix. Returns `undefined` for an upstream path without a counterpart, and for an address of the control origin.
   * `origin` and `target` are the upstream request's; `host` is the control origin's.
   */
  readonly location: (
    link: string,
    request: { readonly origin: string; readonly target: string; readonly host: string | undefined }
  ) => string | undefined
}

/** `extraRoots`: further root paths of the deployment's upstream (`UPSTREAM_UI_PATHS`). */
export const make = (extraRoots: ReadonlyArray<string>): UpstreamUiPaths => {
  const rootNames: ReadonlySet<string> = new Set([...rootSegments, ...extraRoots.map(firstSegment)])

  const withPrefix = (path: string): string | undefined => {
    if (isUi.test(path)) return prefix + path.replace(isUi, "")
    return rootNames.has(firstSegment(path.split(/[?#]/, 1)[0] ?? "")) ? prefix + path : undefined
  }

  return {
    upstreamTarget: (target) => {
      const queryStart = target.indexOf("?")
      const path = queryStart === -1 ? target : target.slice(0, queryStart)
      const query = queryStart === -1 ? "" : target.slice(queryStart)
      if (ambiguousPath.test(path)) return undefined
      if (path === prefix) return `/ui${query}`
      if (!path.startsWith(`${prefix}/`)) return undefined
      const rest = path.slice(prefix.length)
      return (rootNames.has(firstSegment(rest)) ? rest : `/ui${rest}`) + query
    },
    location: (link, { host, origin, target }) => {
      if (!URL.canParse(link, origin + target)) return undefined
      const url = new URL(link, origin + target)
      if (url.origin === origin) return withPrefix(url.pathname + url.search + url.hash)
      return /^https?:$/.test(url.protocol) && url.host !== host ? url.href : undefined
    }
  }
}

const firstSegment = (path: string): string => path.slice(1).split("/", 1)[0] ?? ""

/** Servers may interpret such a path differently, so it could reach an unintended resource. */
const ambiguousPath = /[\\#;]|\/\/|\/\.{1,2}(?:\/|$)|%(?:2e|2f|5c|25|00)/i

const isUi = /^\/ui(?=[/?#]|$)/
