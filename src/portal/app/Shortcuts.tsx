import { Modal, Table } from "@mantine/core"
import { useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { useEffect, useEffectEvent, useRef, useState } from "react"
import { shifted, useRangeOfFrame } from "../address/range.ts"
import { toggleLive } from "../api/live.ts"
import { readAgain } from "../shared/change/readAgain.ts"
import type { MenuItem } from "./menu.ts"

/** A letter after `g` counts for so long. */
const goMs = 1_200

/** These have no use for holders of keys: their pages have no palette and no range, and nothing of them is live. */
const ofOperators = ["⌘K or Ctrl K", "[ and ]", "l"]

const explained = [
  ["⌘K or Ctrl K", "go to a page, find an id, do something"],
  ["/", "filter the list"],
  ["g and a letter", "go to a page; its letter is in the menu's hints"],
  ["j and k", "next and previous row; from elsewhere on the page, the first row"],
  ["← and →", "in a row: its cells; in a chart: its times"],
  ["c", "copy the cell, or the first one of the row"],
  ["Enter", "open the row; in the drawer, open the whole page"],
  ["x", "select the row"],
  ["Esc", "close the drawer or the dialog"],
  ["[ and ]", "range before and after"],
  ["r", "read everything on the page again"],
  ["l", "pause the live data, and go on"],
  ["?", "show this"]
] as const

const helpEvent = "svc-help"

/** Opens the list of the keys from elsewhere on the page. */
export const showKeys = (): void => {
  document.dispatchEvent(new Event(helpEvent))
}

/** Letters mean nothing to these fields, which keep the focus after a click. */
const withoutText = ["checkbox", "radio", "button", "submit"]

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target instanceof HTMLInputElement
    ? !withoutText.includes(target.type)
    : target.isContentEditable ||
      ["TEXTAREA", "SELECT"].includes(target.tagName) ||
      target.role === "combobox" ||
      // menus find their items by the first letter
      target.closest("[role=menu],[role=listbox]") !== null)

const isElsewhere = ({ altKey, ctrlKey, metaKey, target }: KeyboardEvent): boolean =>
  ctrlKey ||
  metaKey ||
  altKey ||
  isTyping(target) ||
  // a dialog has the keyboard for itself
  document.querySelector("[role=dialog][aria-modal=true]") !== null

/** Goes to the row that was the last to have the focus, or to the first one. */
const focusRow = () => {
  const rows = "main tr[data-index]"
  const row = document.querySelector<HTMLElement>(`${rows}[tabindex="0"]`) ?? document.querySelector<HTMLElement>(rows)
  row?.focus()
}

interface Props {
  readonly pages: ReadonlyArray<Pick<MenuItem, "path" | "letter">>
  readonly isHolder?: boolean
}

/** The keys that work on every page. Those of rows are in `DataTable`. */
export const Shortcuts = ({ isHolder = false, pages }: Props) => {
  const [isHelpOpen, setHelpOpen] = useState(false)
  const { range, setRange } = useRangeOfFrame()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const goUntil = useRef(0)

  /** The letter after `g`. It comes before the keys of the part of the page that has the focus, such as a row. */
  const go = useEffectEvent((event: KeyboardEvent) => {
    if (event.timeStamp >= goUntil.current || isElsewhere(event)) return
    goUntil.current = 0
    const page = pages.find(({ letter }) => letter === event.key)
    if (page === undefined) return
    event.preventDefault()
    event.stopPropagation()
    void navigate({ to: page.path })
  })

  const press = useEffectEvent((event: KeyboardEvent) => {
    if (event.defaultPrevented || isElsewhere(event)) return
    const act = actions[event.key]
    if (act === undefined) return
    event.preventDefault()
    act(event)
  })

  const actions: Readonly<Record<string, (event: KeyboardEvent) => void>> = {
    g: (event) => {
      goUntil.current = event.timeStamp + goMs
    },
    "/": () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus(),
    j: focusRow,
    k: focusRow,
    r: () => void readAgain(queries),
    "?": () => setHelpOpen(true),
    ...(!isHolder && {
      "[": () => setRange(shifted(range, -1)),
      "]": () => setRange(shifted(range, 1)),
      l: () => toggleLive()
    })
  }

  useEffect(() => {
    const first = (event: KeyboardEvent) => go(event)
    const last = (event: KeyboardEvent) => press(event)
    document.addEventListener("keydown", first, { capture: true })
    document.addEventListener("keydown", last)
    return () => {
      document.removeEventListener("keydown", first, { capture: true })
      document.removeEventListener("keydown", last)
    }
  }, [])

  useEffect(() => {
    const listener = () => setHelpOpen(true)
    document.addEventListener(helpEvent, listener)
    return () => document.removeEventListener(helpEvent, listener)
  }, [])

  const shown = explained.filter(([keys]) => !isHolder || !ofOperators.includes(keys))
  return (
    <Modal opened={isHelpOpen} onClose={() => setHelpOpen(false)} title="Keys">
      <Table>
        <Table.Tbody>
          {shown.map(([keys, meaning]) => (
            <Table.Tr key={keys}>
              <Table.Th scope="row">
                <kbd>{keys}</kbd>
              </Table.Th>
              <Table.Td>{meaning}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  )
}
