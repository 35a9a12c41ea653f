import type { Page } from "playwright-core"

/** Goes to another page of the portal as a link in it does. The router counts its places in the history. */
export const follow = (page: Page, path: string): Promise<void> =>
  page.evaluate(`history.pushState({ __TSR_index: history.state.__TSR_index + 1 }, "", "/admin-ui${path}")`)
