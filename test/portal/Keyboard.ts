import { assert } from "@effect/vitest"
import type { Locator, Page } from "playwright-core"

/** An element that needs more presses of Tab counts as out of reach. */
const mostTabs = 60

/** A person without a mouse. Whatever is done to the page is a key; all else is reading. */
export class Keyboard {
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  /** Presses keys, such as `Enter` and `Shift+Tab`, one after the other. */
  async press(...keys: ReadonlyArray<string>): Promise<void> {
    for (const key of keys) await this.page.keyboard.press(key)
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text)
  }

  /** Types instead of what a field has. */
  async replace(text: string): Promise<void> {
    await this.press("Control+a")
    await this.page.keyboard.insertText(text)
  }

  /** Presses Tab, or `Shift+Tab`, until the element has the focus. */
  async tabTo(wanted: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
    const element = wanted.first()
    await element.waitFor()
    for (let presses = 0; presses <= mostTabs; presses++) {
      if (await element.evaluate((one) => one === one.ownerDocument.activeElement)) return
      await this.press(key)
    }
    assert.fail(`${mostTabs} presses of ${key} do not lead to ${wanted}`)
  }

  async choose(wanted: Locator, key?: "Tab" | "Shift+Tab"): Promise<void> {
    await this.tabTo(wanted, key)
    await this.press("Enter")
  }

  /** Goes to a page or begins an action by its name. */
  go(name: string): Promise<void> {
    return this.#call(name, name)
  }

  /** Goes to what has the id, of the kind that the palette names. */
  find(kind: string, id: string): Promise<void> {
    return this.#call(id, `${kind} ${id}`)
  }

  async #call(typed: string, shown: string): Promise<void> {
    await this.press("Control+k")
    await this.page.locator("input:focus[placeholder='Go to, find an id, do …']").waitFor()
    await this.type(typed)
    await this.page.getByRole("dialog").getByText(shown, { exact: true }).first().waitFor()
    await this.press("Enter")
  }
}
