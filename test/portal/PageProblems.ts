import type { Page, Request } from "playwright-core"

const mostRecent = 30

/** Collects what goes wrong in a page: complaints of the console and the policy, errors, failed requests. */
export class PageProblems {
  readonly #found: Array<string> = []
  readonly #expected: Array<RegExp> = []
  readonly #expectedAt: Array<(url: URL) => boolean> = []
  readonly #recent: Array<string> = []

  /** What went wrong and was not expected. */
  get unexpected(): ReadonlyArray<string> {
    return this.#found.filter((problem) => !this.#expected.some((pattern) => pattern.test(problem)))
  }

  /** The latest answers of the server, a line each. */
  get recent(): ReadonlyArray<string> {
    return this.#recent
  }

  /** Problems that match are right, such as `/^409 PATCH /`. */
  expect(pattern: RegExp): void {
    this.#expected.push(pattern)
  }

  /** Responses of these addresses may be errors. */
  expectAt(isExpected: (url: URL) => boolean): void {
    this.#expectedAt.push(isExpected)
  }

  watch(page: Page): void {
    page.on("console", (message) => {
      const text = message.text()
      // the response itself is looked at below
      if (!["error", "warning"].includes(message.type()) || text.startsWith("Failed to load resource")) return
      this.#found.push(`console: ${text}`)
    })
    page.on("pageerror", (error) => void this.#found.push(`error: ${error.message}`))
    page.on("response", (response) => {
      this.#recent.push(`${response.status()} ${response.request().method()} ${response.url()}`)
      if (this.#recent.length > mostRecent) this.#recent.shift()
      if (response.status() < 400) return
      this.#add(response.request(), String(response.status()))
    })
    page.on("requestfailed", (request) => {
      // a page that is left, or an event stream that is closed, cancels its requests
      if (request.failure()?.errorText !== "net::ERR_ABORTED") this.#add(request, request.failure()?.errorText ?? "")
    })
  }

  #add(request: Request, outcome: string): void {
    const url = new URL(request.url())
    if (this.#expectedAt.some((isExpected) => isExpected(url))) return
    this.#found.push(`${outcome} ${request.method()} ${url.pathname}${url.search}`)
  }
}
