import { useDebouncedValue, useLocalStorage } from "@mantine/hooks"
import { Spotlight, type SpotlightActionData } from "@mantine/spotlight"
import { IconSearch } from "@tabler/icons-react"
import { useNavigate } from "@tanstack/react-router"
import { useEffect, useRef, useState } from "react"
import { useApi } from "../api/queries.ts"
import { useSession } from "../api/session.ts"
import { shownText } from "../shared/foreign/marks.ts"
import { actionsFor } from "./actions.ts"
import { addressOfFound, kindWords, searchedSentence, useNamed } from "./found.ts"
import { itemsFor, type MenuGroup } from "./menu.ts"

const mostRecent = 10
/** Shorter texts are the beginning of a word rather than an id. */
const leastId = 4

interface Recent {
  readonly label: string
  readonly to: string
}

/** Goes to a page, finds whatever has an id, and begins an action. */
export const Palette = ({ groups }: { readonly groups: ReadonlyArray<MenuGroup> }) => {
  const navigate = useNavigate()
  const session = useSession()
  const [text, setText] = useState("")
  const [asked] = useDebouncedValue(text.trim(), 150)
  const [recent, setRecent] = useLocalStorage<ReadonlyArray<Recent>>({ key: "svc-recent", defaultValue: [] })
  const found = useApi("/admin-ui/find", { query: { q: asked } }, { enabled: asked.length >= leastId })
  const scopes = session.state === "signed-in" ? session.who.scopes : []
  const named = useNamed(asked, scopes)

  const go = (label: string, to: string) => () => {
    setRecent((before) => [{ label, to }, ...before.filter((one) => one.to !== to)].slice(0, mostRecent))
    void navigate({ href: `/admin-ui${to}` })
  }
  const action = (id: string, label: string, to: string, description?: string): SpotlightActionData => ({
    id,
    label: shownText(label),
    onClick: go(label, to),
    ...(description !== undefined && { description })
  })

  const pages = groups.map((group) => ({
    group: group.label,
    actions: itemsFor(group.items, scopes).map(({ label, letter, path }) =>
      action(`page ${path}`, label, path, `g ${letter}`)
    )
  }))
  const doing = {
    group: "Do",
    actions: actionsFor(scopes).map(({ label, to }) => action(`do ${to}`, label, to))
  }
  const isCurrent = asked.length >= leastId && asked === text.trim() && !found.isPlaceholderData
  const results = isCurrent ? (found.data?.found ?? []) : []
  const hits = {
    group: "Found by id",
    actions: results.map((one) => ({
      ...action(`found ${one.kind} ${one.id}`, one.title, addressOfFound(one), `${kindWords[one.kind]} ${one.id}`),
      // the id itself need not be in the title
      keywords: asked
    }))
  }
  const byName = {
    group: "Found by name",
    actions: (asked === text.trim() ? named : []).map(({ id, kind, label, to }) => ({
      ...action(`named ${kind} ${id}`, label, to, kind),
      // the word may stand in the description or the owner
      keywords: asked
    }))
  }
  const search = useRef<HTMLInputElement>(null)
  const ids = [...results, ...byName.actions].map(({ id }) => id).join(" ")
  // The library chooses the first row as a person types. Nothing is chosen among rows that arrive later.
  useEffect(() => {
    const isChosen = document.querySelector("[role=dialog] [data-action][data-selected]") !== null
    if (ids !== "" && !isChosen)
      search.current?.dispatchEvent(new KeyboardEvent("keydown", { code: "ArrowDown", bubbles: true }))
  }, [ids])
  const latest = {
    group: "Last used",
    actions: recent.map(({ label, to }) => action(`recent ${to}`, label, to))
  }
  const nothing = !isCurrent
    ? "Type the name of a page, a key, a project or a model, or an id of any kind."
    : found.error !== null
      ? found.error.message
      : found.data === undefined || found.isFetching
        ? "Looking…"
        : searchedSentence(found.data.searched)
  // whoever types the name of a page wants the page, and not an action that has the word in it
  const shown = text === "" ? [latest, doing, ...pages] : [hits, ...pages, doing, byName]
  return (
    <Spotlight
      actions={shown.filter(({ actions }) => actions.length > 0)}
      query={text}
      onQueryChange={setText}
      shortcut={["mod + K"]}
      nothingFound={<output>{nothing}</output>}
      scrollable
      maxHeight={420}
      // its input stays where it is while the rows below change
      centered={false}
      // the shortcut is ignored during the closing transition
      transitionProps={{ duration: 0 }}
      // Mantine blurs the page behind, which without a graphics card takes half a second for each letter
      overlayProps={{ backgroundOpacity: 0.35 }}
      highlightQuery
      searchProps={{
        ref: search,
        leftSection: <IconSearch size={16} />,
        placeholder: "Go to, find an id, do …",
        "aria-label": "Go to a page, find an id, or do something"
      }}
    />
  )
}
