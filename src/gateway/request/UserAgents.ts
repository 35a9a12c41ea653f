/** The classes of client programs. A record names one of them, because user agents themselves are unbounded. */
export type Client =
  | "openai-python"
  | "openai-node"
  | "openai-other"
  | "anthropic-python"
  | "anthropic-ts"
  | "anthropic-other"
  | "claude-code"
  | "codex"
  | "cursor"
  | "curl"
  | "python"
  | "node"
  | "go"
  | "java"
  | "browser"
  | "other"

/** Returns the class of the client by the first product of its user agent, such as `OpenAI/Python 1.2`. */
export const clientOf = (userAgent: string | undefined): Client => {
  if (userAgent === undefined) return "other"
  const agent = userAgent.slice(0, longestAgent).toLowerCase()
  const name = /^[\w.-]+/.exec(agent)?.[0] ?? ""
  const sdk = sdks.get(name)
  if (sdk !== undefined) {
    const language = /^\/([a-z]+)/.exec(agent.slice(name.length))?.[1]
    return language === "python" ? sdk.python : language === "js" ? sdk.js : sdk.other
  }
  if (name === "mozilla") return agent.includes(" cursor/") ? "cursor" : "browser"
  return programs.get(name) ?? (name.startsWith("codex") ? "codex" : "other")
}

/** Browsers need about 150 characters. */
const longestAgent = 512

interface Sdk {
  readonly python: Client
  readonly js: Client
  readonly other: Client
}

const openai: Sdk = { python: "openai-python", js: "openai-node", other: "openai-other" }
const anthropic: Sdk = { python: "anthropic-python", js: "anthropic-ts", other: "anthropic-other" }

/** The vendors' SDKs call themselves `<class>/<language> <version>`. */
const sdks: ReadonlyMap<string, Sdk> = new Map([
  ["openai", openai],
  ["asyncopenai", openai],
  ["azureopenai", openai],
  ["asyncazureopenai", openai],
  ["anthropic", anthropic],
  ["asyncanthropic", anthropic]
])

const programs: ReadonlyMap<string, Client> = new Map<string, Client>([
  ["claude-cli", "claude-code"],
  ["claude-code", "claude-code"],
  ["cursor", "cursor"],
  ["curl", "curl"],
  ["python", "python"],
  ["python-requests", "python"],
  ["python-httpx", "python"],
  ["python-urllib", "python"],
  ["aiohttp", "python"],
  ["node", "node"],
  ["node-fetch", "node"],
  ["undici", "node"],
  ["axios", "node"],
  ["bun", "node"],
  ["deno", "node"],
  ["go-http-client", "go"],
  ["java-http-client", "java"],
  ["apache-httpclient", "java"],
  ["okhttp", "java"]
])
