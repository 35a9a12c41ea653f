import type { Page, Route } from "playwright-core"

/** Asks the server, and keeps its answers to paths that match from the page until the returned function is called. */
export const holdAnswers = async (page: Page, path: RegExp): Promise<() => void> => {
  let release = () => {}
  const isReleased = new Promise<void>((go) => {
    release = go
  })
  await page.route(path, async (route) => {
    // what the browser adds on its way, and the server asks for
    const headers = { ...(await route.request().allHeaders()), "sec-fetch-site": "same-origin" }
    const answer = await route.fetch({ headers }).catch(() => undefined)
    await isReleased
    // the page may be gone by then
    if (answer !== undefined) await route.fulfill({ response: answer }).catch(() => {})
  })
  return release
}

/** Keeps requests to paths that match from the server until the returned function is called. */
export const holdRequests = async (page: Page, path: RegExp): Promise<() => Promise<void>> => {
  let release = () => {}
  const isReleased = new Promise<void>((go) => {
    release = go
  })
  const isHeld = (url: URL) => path.test(url.pathname)
  const hold = async (route: Route) => {
    // pages of tasks have the addresses of their API
    if (route.request().resourceType() !== "document") await isReleased
    // the page may be gone by then
    await route.continue().catch(() => {})
  }
  await page.route(isHeld, hold)
  return () => {
    release()
    return page.unroute(isHeld, hold)
  }
}
