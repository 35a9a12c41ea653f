/** The upstream's UI on the control origin, for clients that send an operator token. */
export const prefix = "/admin-ui/upstream-ui"

/**
 * Names at the root of the upstream that its UI asks for: below the prefix they lead to the upstream's root, and any
 * other path leads into `/ui`.
 */
const rootSegments = [
  ...["upstream-asset-prefix", "upstream", "v1", "v2", "v3", "get_image", "get", "public", "config", "health", "key"],
  ...["in_product_nudges", "model", "model_group", "models", "organization", "policies", "project", "prompts", "sso"],
  ...["tag", "team", "user"]
]

/** The ways between the prefix on the control origin and the upstream. */
export interface UpstreamUiPaths {
  /** The upstream's path and query for a target of the control listener; `undefined` where there is none. */
  readonly upstreamTarget: (target: string) => string | undefined
  /**
   * A redirect's `Location` for a client that may follow it with its operator token. The upstream's own addresses are put
   * below the prefix; what has no place there, and any other address of the control origin, is left out. `target` and
   * `origin` say what was asked of the upstream, `host` is the control origin's.
   */
  readonly location: (
    link: string,
    request: { readonly origin: string; readonly target: string; readonly host: string | undefined }
  ) => string | undefined
}

/** `named`: root paths by the names that they have at a deployment's own upstream (`UPSTREAM_UI_PATHS`). */
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

/** Two servers could read such a path differently, and so answer for different paths. */
const ambiguousPath = /[\\#;]|\/\/|\/\.{1,2}(?:\/|$)|%(?:2e|2f|5c|25|00)/i

const isUi = /^\/ui(?=[/?#]|$)/
