import { PageHeader } from "../../shared/page/PageHeader.tsx"

const RoutesPage = () => <PageHeader title="Routes" />

export default RoutesPage
