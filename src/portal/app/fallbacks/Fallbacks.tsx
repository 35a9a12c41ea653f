import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { MissingFile } from "../../api/laterFile.ts"
import { reloadIfAnswered } from "../../api/reload.ts"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { MissingPage } from "./MissingPage.tsx"

interface NotFoundProps {
  /** The home page of whoever is signed in. */
  readonly home?: "/" | "/my"
}

export const NotFound = ({ home = "/" }: NotFoundProps) => (
  <>
    <PageHeader title="There is no such page" />
    <p>
      The address may be of another version. <Link to={home}>Go to the home page</Link>
      {home === "/" && (
        <>
          , or press <kbd>⌘K</kbd> or <kbd>Ctrl K</kbd> to find something by its id
        </>
      )}
      .
    </p>
  </>
)

/** Stands in place of a page by a mistake of the portal itself, or without the files of the page. */
export const PageFailed = ({ error }: { readonly error: unknown }) =>
  error instanceof MissingFile ? (
    <MissingPage />
  ) : (
    <>
      <PageHeader title="This page failed" />
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <Button variant="default" onClick={() => void reloadIfAnswered()}>
        Load the portal again
      </Button>
    </>
  )

/** This note stands in place of a page of tasks where the process that answers has none. */
export const NoTasks = ({ title }: { readonly title: string }) => (
  <>
    <PageHeader title={title} />
    <Panel>
      <Empty>
        This process has no tasks. Start it with <code>--tasks ./tasks.ts</code> for those of a module, or with{" "}
        <code>--example</code> to see how an example&apos;s are shown.
      </Empty>
    </Panel>
  </>
)
