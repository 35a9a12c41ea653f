import { Button, Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { AllRoutesForm } from "./AllRoutesForm.tsx"
import { RouteTable } from "./RouteTable.tsx"
import { families } from "./route.ts"
import { ServiceRoutes } from "./ServiceRoutes.tsx"

const liveTopics = ["configuration"] as const
const paths = ["/admin-ui/admin/family-a-routes", "/admin-ui/admin/family-b-routes", "/admin-ui/admin/services"]

/** The paths that the gateway serves: which are open, in which mode, with which limits. */
const RoutesPage = () => {
  const { change, text } = useTextSearch()
  const mayChange = useAllowed("policies:update")
  const a = useApi(`/admin-ui/admin/${families.a.group}`, {})
  const b = useApi(`/admin-ui/admin/${families.b.group}`, {})
  useLiveRefresh(liveTopics, paths)
  return (
    <>
      <PageHeader
        title="Routes"
        lead="The paths that the gateway serves: which are open, in which mode, with which limits."
        actions={
          <>
            <CopyAs
              address={`/admin-ui/admin/${families.a.group}`}
              and={[`/admin-ui/admin/${families.b.group}`, "/admin-ui/admin/services"]}
              sections={["routes"]}
            />
            {mayChange && (
              <Button variant="default" onClick={() => change({ do: "all" })}>
                Change all routes
              </Button>
            )}
          </>
        }
      />
      <Stack gap="sm">
        <RouteTable family="a" query={a} />
        <RouteTable family="b" query={b} />
        <ServiceRoutes />
      </Stack>
      {text("do") === "all" && mayChange && a.data !== undefined && b.data !== undefined && (
        <AllRoutesForm routes={{ a: a.data, b: b.data }} onClose={() => change({ do: undefined })} />
      )}
    </>
  )
}

export default RoutesPage
