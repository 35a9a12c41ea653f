import { PageHeader } from "../../shared/page/PageHeader.tsx"

const SystemPage = () => <PageHeader title="System" />

export default SystemPage
