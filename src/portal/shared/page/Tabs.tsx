import { Tabs as MantineTabs } from "@mantine/core"
import type { ReactNode } from "react"
import { useTextSearch } from "../../address/search.ts"

interface Props {
  readonly tabs: ReadonlyArray<{ readonly value: string; readonly label: string; readonly content: () => ReactNode }>
}

/** Parts of a page, of which one is shown. The address has its name (`tab`), so that a link leads to it. */
export const Tabs = ({ tabs }: Props) => {
  const { change, text } = useTextSearch()
  const current = tabs.find(({ value }) => value === text("tab")) ?? tabs[0]
  if (current === undefined) return null
  return (
    <MantineTabs value={current.value} onChange={(value) => change({ tab: value ?? undefined })} keepMounted={false}>
      <MantineTabs.List mb="sm">
        {tabs.map(({ label, value }) => (
          <MantineTabs.Tab key={value} value={value}>
            {label}
          </MantineTabs.Tab>
        ))}
      </MantineTabs.List>
      <MantineTabs.Panel value={current.value}>{current.content()}</MantineTabs.Panel>
    </MantineTabs>
  )
}
